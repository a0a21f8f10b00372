"""What is on disk and on this machine: verification, contents, progress, and what works."""
