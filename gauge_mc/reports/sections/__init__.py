"""The sections of reports, one module each."""
