"""HTCondor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from gauge_mc.errors import INTERRUPTED
from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, COMMAND, JOB_NAME, BatchSystem, JobArray


class HTCondor(BatchSystem):
    """HTCondor, whose options are commands of a submit description.

    A job stays in the queue, and begins again, until it ends with another exit code than that of a
    stopped run. HTCondor sends no signal before the time of a job is up, so that a run keeps the
    time itself. The hosts must share the folder of the scan.
    """

    name: ClassVar[str] = "htcondor"
    title: ClassVar[str] = "HTCondor"
    stopped: ClassVar[str] = "stay in the queue and begin again"
    program: ClassVar[str] = "condor_submit"
    queue: ClassVar[str] = "condor_q"
    answer: ClassVar[str] = r"submitted to cluster (\d+)"
    index: ClassVar[str] = "$(Process)"
    warns: ClassVar[bool] = False
    keys: ClassVar[str] = r"\+?[A-Za-z][A-Za-z0-9_.]*"

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the commands of the submit description; see `BatchSystem.directives`."""
        program, *words = COMMAND
        folder = _literal(str(array.folder))
        card = f"{_literal(str(array.folder), quoted=True)}/{self.index}.toml"
        usual: dict[str, str | None] = {
            "universe": "vanilla",
            "executable": _literal(program),
            "arguments": f"\"{' '.join(words)} '{card}'\"",
            "output": f"{folder}/{self.index}.log",
            "error": f"{folder}/{self.index}.err",
            "log": f"{folder}/events.log",
            "getenv": "True",
            "should_transfer_files": "NO",
            "batch_name": JOB_NAME,
            "allowed_execute_duration": str(array.seconds),
            "on_exit_remove": f"(ExitBySignal =?= True) || (ExitCode =!= {INTERRUPTED})",
        }
        if array.together:
            usual["max_materialize"] = str(array.together)
        for key, value in (usual | dict(array.options)).items():
            yield f"{key} = {'True' if value is None else value}"
        yield f"queue {array.jobs}"

    def script(self, array: JobArray) -> str:
        """Return the submit description of an array."""
        return "".join(f"{one}\n" for one in self.directives(array))


def _literal(text: str, quoted: bool = False) -> str:
    """Return a text whose characters mean themselves; `quoted` between quotes of arguments."""
    text = text.replace("$", "$(DOLLAR)")
    return text.replace("'", "''").replace('"', '""') if quoted else text


BATCH_SYSTEMS.register(HTCondor())
