"""Errors that are shown to the user as one sentence."""

from __future__ import annotations

import errno

from gauge_mc.quoting import sentence

UNCHECKED = 69
"""Exit code if a file could not be read or checked here (EX_UNAVAILABLE of sysexits.h)."""


class GaugeError(Exception):
    """A failure (exit code 1). The message says in one sentence what is wrong and what to do.

    Parameters
    ----------
    message : str
        The sentence that is shown.
    reason : str
        Its part that says what is wrong, if it is known apart.
    """

    exit_code = 1

    def __init__(self, message: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message.removesuffix(".")

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython and notebooks show in place of a traceback."""
        return [f"{type(self).__name__}: {sentence(str(self))}"]


class UsageError(GaugeError):
    """An invalid request (exit code 2). The message says which requests are valid."""

    exit_code = 2


class UnknownNameError(UsageError, KeyError):
    """A name that a registry does not have; a `KeyError`, because registries are mappings."""

    __str__ = Exception.__str__  # that of KeyError would quote the message


class CautionWarning(UserWarning):
    """A caution about something that works all the same."""


class DamagedError(GaugeError):
    """A verdict on data: they are damaged, missing, or belong to something else.

    No other error says anything about the data: whoever looks may lack a compiler, a permission,
    memory or a package.
    """


class MissingFileError(UsageError, DamagedError):
    """There is no file of a name."""


class UnreadableError(GaugeError):
    """The system does not let a file be read, which may be intact."""


class UnsupportedError(GaugeError):
    """A file is of a kind, or has a content, that cannot be read; it may be intact."""

    exit_code = UNCHECKED


class IrregularFileError(UsageError, UnsupportedError):
    """A folder, a pipe or a device has the name of a file that is to be read."""


class NoMemoryError(GaugeError):
    """There is too little memory; the files that were read may be intact."""


class NoKernelsError(GaugeError):
    """Kernels cannot be compiled, stored or loaded on this machine; files may be intact."""


class UncheckedError(GaugeError):
    """Files could not be checked here, and no other one is damaged."""

    exit_code = UNCHECKED


class ConvergenceError(GaugeError):
    """A solution does not reach its tolerance; other links or parameters may do better."""


class ChainError(GaugeError):
    """A Markov chain should not go on. It is as it was after its last update, and can be saved."""


INTERRUPTED = 75
"""Exit code of a run that was stopped and can be continued (EX_TEMPFAIL of sysexits.h)."""


class StoppedError(GaugeError):
    """Work was stopped; the same command continues it."""

    exit_code = INTERRUPTED


REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or ask for a larger quota",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f), or choose another folder",
    errno.EIO: "check the disk and the file system",
    errno.ENOENT: "create the folder, or choose another one",
    errno.ENOTDIR: "choose a path whose parents are folders",
    errno.ENOTEMPTY: "choose an empty folder",
    errno.EISDIR: "choose the name of a file, not that of a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EROFS: "choose a folder in which you may write",
    errno.EACCES: "choose a folder in which you may write, or change its permissions",
    errno.EPERM: "choose a folder in which you may write, or change its permissions",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENFILE: "close other programs, because the system has too many open files",
    errno.ENOMEM: "free some memory",
}
"""Remedies for failures of the system to write a file, by error number."""


def not_written(path: object, error: OSError) -> GaugeError:
    """Return the error for a file that the system could not write."""
    reason = error.strerror or str(error)
    remedy = REMEDIES.get(error.errno or 0, "check the disk and the permissions of the folder")
    return GaugeError(f"{path} could not be written ({reason}): {remedy}.")
