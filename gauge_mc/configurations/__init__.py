"""Configurations on their way between files and fields, one time slice after the other."""
