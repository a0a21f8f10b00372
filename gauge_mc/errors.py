"""Errors that are shown to the user as one sentence."""


class GaugeError(Exception):
    """A failure (exit code 1). The message says in one sentence what is wrong and what to do."""

    exit_code = 1


class UsageError(GaugeError):
    """An invalid request (exit code 2). The message says which requests are valid."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """A name that a registry does not have; a `KeyError`, because registries are mappings."""

    __str__ = Exception.__str__  # that of KeyError would quote the message


INTERRUPTED = 75
"""Exit code of a run that was stopped and can be continued (EX_TEMPFAIL of sysexits.h)."""
