"""Inspection of files and of the machine: contents, verification, status, and diagnosis."""
