"""CallRing: a ring buffer in pinned memory, from kernels that call the host to a thread of ours.

Each stream has its own, which the calls of all its programs share: their order is that of the
stream. A kernel appends frames, in the layout of `lowering.plan.records.call_records`, and waits
for room: no call is lost, and one may be larger than the ring.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from lowering.cuda.effects.ring import LOST, TAIL, Ring
from lowering.cuda.interface import Driver, HostAllocation
from lowering.plan.nests.rounding import round_up
from lowering.plan.records.call_records import (
    ANSWER_HEAD_BYTES,
    ANSWERED,
    FAILED,
    FIRST,
    FRAME_BYTES,
    FRAME_HEAD_BYTES,
    LAST,
    answer_bytes,
    answer_offset,
)
from lowering.plan.records.print_records import HEAD_BYTES, Record
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.callbacks import HostFunction

ENDED = LOST
"""The launches that have ended. The word is that of lost records, because no call is lost."""
WORD_NUMBERS = 1 << 32
"""How many launches that word can count."""

Array = np.ndarray[Any, Any]


class AnswerMemory:
    """Pinned memory for the answers of one function, in one executable."""

    def __init__(self, driver: Driver, record: Record) -> None:
        self.memory = driver.allocate_host(answer_bytes(record))
        self._words = self.memory.bytes[:ANSWER_HEAD_BYTES].view(np.uint64)
        self._words[:] = 0
        self._results: list[Array] = [
            self.memory.bytes[at : at + type_.nbytes].view(type_.dtype).reshape(type_.shape)
            for position, type_ in enumerate(record.types)
            for at in [answer_offset(record, position)]
        ]

    def give(self, number: int, results: tuple[Array, ...] | None) -> None:
        """Answer the call of this number; None: there are no results."""
        for target, result in zip(self._results, results or (), strict=False):
            target[...] = result
        self._words[FAILED] = results is None
        self._words[ANSWERED] = number


class CallSite:
    """A callback of a program: its function, the layout of its arguments, where answers go."""

    __slots__ = ("__weakref__", "answer", "callback", "number", "record")

    def __init__(
        self, number: int, callback: HostFunction, record: Record, answer: AnswerMemory | None
    ) -> None:
        self.number = number
        self.callback = callback
        self.record = record
        self.answer = answer


@dataclass(frozen=True, slots=True, eq=False)
class ArrivedCall:
    """A call that has arrived: the number of it at its site, and the arguments.

    `end` is where it ends, in bytes since the start of the ring.
    """

    site: CallSite
    number: int
    arrays: tuple[Array, ...]
    end: int


class CallRing(Ring[CallSite]):
    """The ring, and the sites that call through it. One thread at a time takes."""

    size_variable: ClassVar[str] = "TRACEGRAPH_CALLBACK_BUFFER_BYTES"
    fewest_bytes: ClassVar[int] = 2 * FRAME_BYTES  # a frame with its head fits

    def __init__(self, memory: HostAllocation) -> None:
        super().__init__(memory)
        self._parts: list[bytes] = []

    def add_site(
        self, callback: HostFunction, record: Record, answer: AnswerMemory | None
    ) -> CallSite:
        """A new site, which its executable must keep: what it sent is dropped once it is gone."""
        site = CallSite(next(self._numbers), callback, record, answer)
        self._sites[site.number] = site
        return site

    @property
    def ended(self) -> int:
        """The launches that have ended, of the numbers that a word can hold."""
        return int(self._words[ENDED])

    @ended.setter
    def ended(self, launches: int) -> None:
        self._words[ENDED] = launches

    @property
    def ended_address(self) -> int:
        """Where the device counts them."""
        return self.memory.pointer + self._words.itemsize * ENDED

    def take(self) -> list[ArrivedCall]:
        """The calls that have arrived, in order; their place in the ring is free then."""
        return list(self._take())

    def _take(self) -> Iterator[ArrivedCall]:
        head, tail = self.head, self.tail
        while tail < head:
            site_number, nbytes, marks, number = (
                int(word) for word in self._part(tail, FRAME_HEAD_BYTES).view(np.uint64)
            )
            content = self._part(tail + FRAME_HEAD_BYTES, nbytes).tobytes()
            tail += FRAME_HEAD_BYTES + round_up(nbytes, FRAME_HEAD_BYTES)
            self._words[TAIL] = tail
            if marks & FIRST:
                self._parts.clear()  # of a call that was given up when its program was stopped
            self._parts.append(content)
            if marks & LAST:
                raw = bytes(HEAD_BYTES) + b"".join(self._parts)
                self._parts.clear()
                site = self._sites.get(site_number)
                if site is not None:
                    yield ArrivedCall(site, number, site.record.arrays(raw), tail)
