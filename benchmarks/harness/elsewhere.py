"""A library in a process of its own: some settings hold for all of a process, as XLA's flags do.

The process is asked for one thing after another over a pipe, and answers each. It prepares rows,
times itself, and gives its results back; it is timed in the turns of all others, on their core.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Any

from .measure import Contestant
from .row import Inputs, Results, Row


class Elsewhere:
    """The other process, which has opened a library; `version` is that library's.

    With `cores`, it stays on them. Without, it is timed on the core of the turn.

    Raises:
        RuntimeError: it could not be opened, or the process ended.
    """

    def __init__(
        self,
        library: str,
        device: str,
        settings: Mapping[str, str],
        cores: Collection[int] | None = None,
    ) -> None:
        self.library, self.cores = library, cores
        self._pipe, theirs = Pipe()
        path = os.pathsep.join(["", *sys.path])
        told = ",".join(map(str, cores or ()))
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, library, device, str(theirs.fileno()), told],
            env={**os.environ, "PYTHONPATH": path, **settings},
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            self.version = str(self._answer())
        except BaseException:
            self.close()
            raise

    def ask(self, what: str, *arguments: Any) -> Any:
        """What the `_Served` of the process says to that."""
        try:
            self._pipe.send((what, arguments))
        except OSError:
            raise RuntimeError("its process has ended") from None
        return self._answer()

    def _answer(self) -> Any:
        try:
            fine, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise RuntimeError("its process has ended") from None
        if not fine:
            raise RuntimeError(answer)
        return answer

    def enter(self, label: str, row: Row, inputs: Inputs) -> tuple[RemoteContestant, Results]:
        """A contestant that has run once, and its results."""
        first, found = self.ask("prepare", row.name, inputs)
        work = row.work(inputs, found)
        return RemoteContestant(
            label, lambda: self.ask("run"), lambda _: None, work, first, process=self
        ), found

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.wait()


@dataclass(kw_only=True)
class RemoteContestant(Contestant):
    """A contestant that another process runs and times."""

    process: Elsewhere

    def waited(self, runs: int) -> float:
        seconds: float = self.process.ask("sample", True, runs, self._cores())
        return seconds

    def queued(self, runs: int) -> float:
        seconds: float = self.process.ask("sample", False, runs, self._cores())
        return seconds

    def _cores(self) -> set[int] | None:
        has_affinity = self.process.cores is None and hasattr(os, "sched_getaffinity")
        return os.sched_getaffinity(0) if has_affinity else None


class _Served:
    """What a process can be asked for; it has one contestant at a time."""

    def __init__(self, library: str, device: str) -> None:
        from .library import OPENERS

        self._name, self._library = library, OPENERS[library](device)
        self.version = self._library.version
        self._contestant: Contestant | None = None

    def prepare(self, row: str, inputs: Inputs) -> tuple[float, Results]:
        """Seconds of the first run, and its results."""
        from benchmarks.rows import ROWS

        from .play import prepared

        self._contestant = None  # frees what it holds
        gc.collect()
        gc.disable()
        self._contestant, found = prepared(
            self._name, ROWS[row].contestants[self._name], ROWS[row], self._library, inputs
        )
        return self._contestant.first, found

    def sample(self, waits: bool, runs: int, cores: set[int] | None) -> float:
        """Seconds of a run, on the cores that the asking process is timed on."""
        assert self._contestant is not None
        sample = self._contestant.waited if waits else self._contestant.queued
        if cores is None:
            return sample(runs)
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            return sample(runs)
        finally:
            os.sched_setaffinity(0, allowed)  # for what compiles the next row

    def run(self) -> Results:
        """The results of one more run."""
        assert self._contestant is not None
        return self._library.results(self._contestant.run())


def _serve(library: str, device: str, descriptor: int, cores: str) -> None:
    from .outcome import reason

    if cores:
        os.sched_setaffinity(0, map(int, cores.split(",")))
    pipe = Connection(descriptor)
    try:
        served = _Served(library, device)
        pipe.send((True, served.version))
    except Exception as error:
        pipe.send((False, reason(error)))
        return
    while True:
        try:
            what, arguments = pipe.recv()
        except EOFError:  # the other side has closed
            return
        try:
            pipe.send((True, getattr(served, what)(*arguments)))
        except Exception as error:
            pipe.send((False, reason(error)))


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
