"""Faults of the system, enumerated: calls that fail, and processes that are killed."""
