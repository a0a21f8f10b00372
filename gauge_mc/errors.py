"""Errors that end in one sentence for the user."""


class GaugeError(Exception):
    """Something failed; the message is one sentence that says what and what to do (exit 1)."""

    exit_code = 1


class UsageError(GaugeError):
    """The user asked for something that cannot be; the message says what instead (exit 2)."""

    exit_code = 2
