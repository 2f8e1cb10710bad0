"""Meetings: who waits for whom, as the first process keeps it for all.

Members of a group arrive with bytes, and wait. Once all of the group are there, each gets the bytes
of all. A member is a process, or a device of a mesh that belongs to one. No input or output is done
here: each event gives the messages that are to be sent.

A wait that cannot end is ended: when a process is lost, when one that others wait for has ended,
when members of a group are in different meetings, and when all processes wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracegraph.distributed.messages import Header
from tracegraph.generated.dataclass import dataclass

Member = tuple[str, int]
"""``("process", 1)`` or ``("device", 3)``."""

Sent = tuple[int, Header, Sequence[bytes]]
"""A message to a process."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A member that waits for the others of a group, which belong to processes `owners`.

    Answers to its process bear its `ticket`. `meeting` must be the same for all. `text` says what
    it is, with its line. `launch` is the number of the launch that it is part of, if it is. The
    process waits, as a whole, when `together` of its members do.
    """

    process: int
    ticket: int
    kind: str
    number: int
    group: tuple[int, ...]
    owners: tuple[int, ...]
    meeting: str
    text: str
    launch: int | None
    together: int
    data: bytes

    @property
    def member(self) -> Member:
        """Who arrived."""
        return self.kind, self.number

    @property
    def members(self) -> list[Member]:
        """All of the group."""
        return [(self.kind, number) for number in self.group]


class Meetings:
    """The meetings of `count` processes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: dict[Member, Arrived] = {}
        self._gone: dict[int, str] = {}
        self._failed: dict[int, int] = {}
        self._launches = 0
        self._unnoted: dict[tuple[int, int], set[int]] = {}

    def arrive(self, arrived: Arrived) -> Iterator[Sent]:
        """A member waits."""
        if arrived.launch is not None:
            self._launches = max(self._launches, arrived.launch + 1)
            if arrived.launch in self._failed:
                return  # its process knows that, or will soon
        self._waiting[arrived.member] = arrived
        there = [self._waiting.get(member) for member in arrived.members]
        group = [other for other in there if other is not None and other.group == arrived.group]
        if len(group) < len(there):
            yield from self._unanswerable()
            return
        if any(other.meeting != arrived.meeting for other in group):
            yield from self._deadlock("processes are in different collectives:")
            return
        data = [other.data for other in group]
        for other in group:
            del self._waiting[other.member]
            yield other.process, {"met": other.ticket}, data

    def withdraw(self, process: int, ticket: int) -> Iterator[Sent]:
        """A member waits no longer: it was interrupted."""
        for member, each in list(self._waiting.items()):
            if (each.process, each.ticket) == (process, ticket):
                del self._waiting[member]
        return iter(())

    def fail(self, process: int, launch: int, device: int) -> Iterator[Sent]:
        """A device has failed in a launch, and who waits in that waits no longer."""
        if launch in self._failed:
            return
        self._failed[launch] = device
        kept = {m: each for m, each in self._waiting.items() if each.launch != launch}
        self._waiting = kept
        for other in self._others(process):
            yield other, {"failed": launch, "device": device}, ()

    def stop(self, process: int, ticket: int, launches: list[int], name: str) -> Iterator[Sent]:
        """A process is going to stop launches, once all others have noted it."""
        self._unnoted[process, ticket] = set(self._others(process))
        for other in self._others(process):
            yield other, {"stopped": launches, "name": name, "by": [process, ticket]}, ()
        yield from self._noted()

    def note(self, process: int, by: tuple[int, int]) -> Iterator[Sent]:
        """A process has noted that another one stops launches."""
        if by in self._unnoted:
            self._unnoted[by].discard(process)
        yield from self._noted()

    def _noted(self) -> Iterator[Sent]:
        for (process, ticket), others in list(self._unnoted.items()):
            if not others:
                del self._unnoted[process, ticket]
                yield process, {"met": ticket}, ()

    def end(self, process: int, launches: int | None) -> Iterator[Sent]:
        """A process comes no more: it took leave after so many launches, or is lost."""
        if process in self._gone:
            return
        self._gone[process] = "is lost" if launches is None else "has ended"
        for others in self._unnoted.values():
            others.discard(process)
        yield from self._noted()
        for member in [m for m, each in self._waiting.items() if each.process == process]:
            del self._waiting[member]
        if launches is None:
            self._waiting.clear()
            for other in self._others(process):
                yield other, {"lost": process, "how": self._gone[process]}, ()
            return
        for other in self._others(process):
            yield other, {"ended": process, "launches": launches}, ()
        yield from self._unanswerable()

    def _others(self, process: int) -> list[int]:
        return [p for p in range(self._count) if p != process and p not in self._gone]

    def _unanswerable(self) -> Iterator[Sent]:
        """End the waits that will not be over."""
        for arrived in list(self._waiting.values()):
            gone = [owner for owner in arrived.owners if owner in self._gone]
            if gone:
                del self._waiting[arrived.member]
                how = self._gone[gone[0]]
                yield arrived.process, {"gone": gone[0], "how": how, "of": arrived.ticket}, ()
        if all(self._waits(process) for process in range(self._count)):
            yield from self._deadlock("all processes wait for others:")

    def _waits(self, process: int) -> bool:
        if process in self._gone:
            return True
        own = [each for each in self._waiting.values() if each.process == process]
        return bool(own) and len(own) >= min(each.together for each in own)

    def pass_on(self, process: int, header: Header) -> Iterator[Sent]:
        """Send a message of a process to the others; one of a difference to itself, too."""
        for other in [*self._others(process), *([process] if "differs" in header else [])]:
            yield other, {**header, "of": process}, ()

    def ask(self, process: int, ticket: int) -> Iterator[Sent]:
        """A process that has waited for long wants to know what the others do."""
        yield process, {"patience": ticket, "rows": self._all_rows()}, ()

    def _all_rows(self) -> list[str]:
        return [row for process in range(self._count) for row in self._rows(process)]

    def _deadlock(self, problem: str) -> Iterator[Sent]:
        rows = self._all_rows()
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for arrived in waiting:
            header = {"deadlock": problem, "rows": rows, "of": arrived.ticket}
            header["launches"] = self._launches  # some may have made fewer
            yield arrived.process, header, ()

    def _rows(self, process: int) -> list[str]:
        own = [each for each in self._waiting.values() if each.process == process]
        if not own:
            return [f"process {process}: {self._gone.get(process, 'runs')}"]
        return [
            f"process {process}: waits in {each.text}"
            if each.kind == "process"
            else f"process {process}, device {each.number}: waits in {each.text}"
            for each in own
        ]
