"""Errors that end in one sentence for the user."""


class GaugeError(Exception):
    """A failure. The message is one sentence that says what is wrong and what to do (exit code 1)."""

    exit_code = 1


class UsageError(GaugeError):
    """A request that cannot be met. The message says what can be asked for instead (exit code 2)."""

    exit_code = 2


INTERRUPTED = 75
"""The exit code of a run that was stopped before its end and can be continued (EX_TEMPFAIL)."""
