"""Rendezvous: where the devices of a host mesh meet, each of which is a thread.

It knows who waits where. Devices that are in different collectives, or wait for one that has left,
would wait for ever: all of them get an error instead, which says what each of them does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tracegraph.errors import DeadlockError, PeerFailedError
from tracegraph.ir.record import record

Array = np.ndarray[Any, Any]


@record
class Arrival:
    """A device at a collective.

    `meeting` is what must be the same for all devices of a group: the call, of which all have the
    same Plan. `text` says it with its line.
    """

    group: tuple[int, ...]
    meeting: Any
    text: str
    sources: Sequence[Array]
    targets: Sequence[Array]


Combine = Callable[[Sequence[Sequence[Array]]], Sequence[Sequence[Array]]]
"""From the operands of each of a group's devices, in order, to the results of each."""


class MeetingPlace(Protocol):
    """Where the devices of a host mesh meet in one launch."""

    def group(self, device: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The devices that differ from this one along these axes alone, in order."""

    def meet(self, device: int, arrival: Arrival, combine: Combine) -> None:
        """Wait until all devices of the group are here; then the targets have the results.

        Raises:
            DeadlockError: they never will be.
            PeerFailedError: another device has failed.
            PeerLostError: another process is no longer there.
        """

    def leave(self, device: int, failed: bool) -> None:
        """The device comes no more: its program is over, or has failed."""

    def check(self) -> None:
        """Called by loops on each device, now and then.

        Raises:
            PeerFailedError, PeerLostError: others have ended.
            DeadlockError: devices wait for ever.
        """


class Lines:
    """The lines and planes of devices in a mesh of axes of this shape."""

    def __init__(self, axes: Mapping[str, int]) -> None:
        self._axes = axes
        self._numbers = np.arange(int(np.prod([*axes.values()]))).reshape([*axes.values()])

    @property
    def count(self) -> int:
        """How many devices there are."""
        return self._numbers.size

    def group(self, device: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The devices that differ from this one along these axes alone, in order.

        >>> Lines({"x": 2, "y": 3}).group(4, ["x"])
        (1, 4)
        """
        place = np.unravel_index(device, self._numbers.shape)
        index = tuple(
            [
                slice(None) if name in axes else at
                for name, at in zip(self._axes, place, strict=True)
            ]
        )
        return tuple(np.asarray(self._numbers[index]).ravel().tolist())


class Rendezvous:
    """The meeting place of one launch on a mesh of axes of this shape, in one process."""

    def __init__(self, axes: Mapping[str, int]) -> None:
        lines = Lines(axes)
        self.group, self._count = lines.group, lines.count
        self._changed = threading.Condition()
        self._waiting: dict[int, Arrival] = {}
        self._gone: dict[int, str] = {}
        self._met: dict[int, int] = dict.fromkeys(range(self._count), 0)
        self._failure: Callable[[str], BaseException] | None = None

    def meet(self, device: int, arrival: Arrival, combine: Combine) -> None:
        """Wait until all devices of the group are here; then the targets have the results.

        Raises:
            DeadlockError: they never will be.
            PeerFailedError: another device has failed.
        """
        with self._changed:
            self._waiting[device] = arrival
            turn = self._met[device]
            if all(self._is_here(other, arrival) for other in arrival.group):
                self._complete(arrival, combine)
            else:
                self._require_progress()
            while self._met[device] == turn and self._failure is None:
                self._changed.wait()
            if self._met[device] == turn and self._failure is not None:
                self._waiting.pop(device, None)
                raise self._failure(arrival.text)

    def leave(self, device: int, failed: bool) -> None:
        """The device comes no more: its program is over, or has failed."""
        with self._changed:
            self._gone[device] = "has failed" if failed else "is done"
            if failed and self._failure is None:
                self._fail(lambda text: PeerFailedError(device, text))
            else:
                self._require_progress()

    def check(self) -> None:
        """Called by loops on each device, now and then.

        Raises:
            PeerFailedError: another device has failed.
            DeadlockError: devices wait for ever.
        """
        if self._failure is not None:
            raise self._failure("a loop")

    def _is_here(self, other: int, arrival: Arrival) -> bool:
        there = self._waiting.get(other)
        return there is not None and there.group == arrival.group

    def _complete(self, arrival: Arrival, combine: Combine) -> None:
        all_here = [self._waiting[other] for other in arrival.group]
        if any(each.meeting != arrival.meeting for each in all_here):
            self._deadlock("devices are in different collectives:")
            return
        results = combine([each.sources for each in all_here])
        for each, own in zip(all_here, results, strict=True):
            for target, result in zip(each.targets, own, strict=True):
                target[...] = result
        for other in arrival.group:
            del self._waiting[other]
            self._met[other] += 1
        self._changed.notify_all()

    def _require_progress(self) -> None:
        """Check that a device still runs, so that the others may go on."""
        if self._failure is not None or not self._waiting:
            return
        if len(self._waiting) + len(self._gone) == self._count:
            self._deadlock("all devices wait for others:")

    def _deadlock(self, problem: str) -> None:
        rows = [
            f"device {device}: waits in {self._waiting[device].text}"
            if device in self._waiting
            else f"device {device}: {self._gone.get(device, 'runs')}"
            for device in self._met
        ]
        self._fail(lambda text: DeadlockError(problem, rows))

    def _fail(self, failure: Callable[[str], BaseException]) -> None:
        self._failure = failure
        self._changed.notify_all()


class BuildMeeting(Protocol):
    """Where those that make the graphs of a mesh, one for each device, tell one another something.

    `of_processes` says whether each of them is a process.
    """

    of_processes: bool

    def group(self, device: int, axes: Sequence[str]) -> tuple[int, ...]:
        """The devices that differ from this one along these axes alone, in order."""

    def gather(self, device: int, given: Any) -> list[Any]:
        """What each device gives, as data for JSON, once all have given something.

        Raises:
            BaseException: why another one comes no more.
        """

    def fail(self, failure: BaseException) -> None:
        """A device comes no more."""


class PeerMeeting:
    """The meeting of threads of one process that make the graphs of a mesh of this shape."""

    of_processes = False

    def __init__(self, axes: Mapping[str, int]) -> None:
        self._lines = Rendezvous(axes)
        count = int(np.prod([*axes.values()]))
        self._given: list[Any] = [None] * count
        self._all_here = threading.Barrier(count)
        self._failure: BaseException | None = None

    def group(self, device: int, axes: Sequence[str]) -> tuple[int, ...]:
        """As `Rendezvous.group`."""
        return self._lines.group(device, axes)

    def gather(self, device: int, given: Any) -> list[Any]:
        """As `BuildMeeting`."""
        self._given[device] = given
        try:
            self._all_here.wait()
            found = list(self._given)
            self._all_here.wait()  # none gives the next thing before
        except threading.BrokenBarrierError:
            assert self._failure is not None
            raise self._failure from None
        return found

    def fail(self, failure: BaseException) -> None:
        """A device comes no more."""
        self._failure = self._failure or failure
        self._all_here.abort()


class _Place(threading.local):
    # No context variable: programs run in a context of their own.
    rendezvous: MeetingPlace | None = None
    communicators: Any = None
    together: Any = None
    peers: BuildMeeting | None = None
    device: int = 0


place = _Place()
"""Which device of a mesh this thread stands for, if it does; and where devices meet: on the host
when they run, on GPUs when their graphs are made, for which they have communicators of a library,
and tell one another where their memory is. `together` is the launch of all devices that this
thread makes a part of.
"""
