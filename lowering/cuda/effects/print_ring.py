"""PrintRing: a ring buffer in pinned memory, from printing kernels to the host.

All programs of a device share it, so that prints appear in the order in which they were made. A
kernel appends a record, in the layout of `lowering.codegen.effects.print_records`, and moves the
head; the host prints the records from the tail on, and moves the tail. Records that do not fit are
dropped and counted.
"""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from collections import deque
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from lowering.codegen.effects.print_records import Record
from lowering.cuda.interface import Driver, HostAllocation
from lowering.plan.nests.rounding import power_of_two
from tracegraph.ir.effects import PrintFormat

SIZE_VARIABLE = "TRACEGRAPH_PRINT_BUFFER_BYTES"
DEFAULT_BYTES = 1 << 20
FEWEST_BYTES = 256

HEAD, TAIL, LOST, CAPACITY = range(4)
"""The words at the start of the ring, a `tg_ring`; the bytes follow."""
RING_HEAD_BYTES = 32


class PrintSite:
    """A print of a program: its format, and the layout of its records."""

    __slots__ = ("__weakref__", "format", "number", "record")

    def __init__(self, number: int, format_: PrintFormat, record: Record) -> None:
        self.number = number
        self.format = format_
        self.record = record


class PrintRing:
    """The ring, and the sites that print into it, held weakly."""

    def __init__(self, memory: HostAllocation) -> None:
        self.memory = memory
        self._words = memory.bytes[:RING_HEAD_BYTES].view(np.uint64)
        self._bytes = memory.bytes[RING_HEAD_BYTES:]
        self._words[:] = 0
        self._words[CAPACITY] = self._bytes.size
        self._sites: WeakValueDictionary[int, PrintSite] = WeakValueDictionary()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._texts: deque[str] = deque()
        self._known_losses = 0

    @classmethod
    def allocate(cls, driver: Driver) -> PrintRing:
        """A ring of the size that TRACEGRAPH_PRINT_BUFFER_BYTES asks for.

        Raises:
            ValueError: that is not a number.
        """
        return cls(driver.allocate_host(ring_bytes()))

    def add_site(self, format_: PrintFormat, record: Record) -> PrintSite:
        """A new site. What it printed is lost once the site is collected."""
        with self._lock:
            site = PrintSite(next(self._numbers), format_, record)
            self._sites[site.number] = site
        return site

    def show(self) -> None:
        """Print what has arrived."""
        if self._words[HEAD] == self._words[TAIL] and not self._texts:
            return
        with self._lock:
            self._take()
            while self._texts:
                print(self._texts.popleft())

    def _take(self) -> None:
        """Format the records in the ring, and free their place."""
        head, tail = int(self._words[HEAD]), int(self._words[TAIL])
        while tail < head:
            number, nbytes = (int(word) for word in self._part(tail, 16).view(np.uint64))
            raw = self._part(tail, nbytes).tobytes()
            tail += nbytes
            self._words[TAIL] = tail
            site = self._sites.get(number)
            if site is not None:
                self._texts.append(site.format.render(site.record.arrays(raw)))

    def _part(self, start: int, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Bytes from a position on, which may wrap around the end."""
        start %= self._bytes.size
        behind = nbytes - (self._bytes.size - start)
        if behind <= 0:
            return self._bytes[start : start + nbytes]
        return np.concatenate([self._bytes[start:], self._bytes[:behind]])

    def warn_of_losses(self) -> None:
        """Warn of records that were dropped since the last call."""
        lost = int(self._words[LOST])
        new, self._known_losses = lost - self._known_losses, lost
        if new:
            warnings.warn(
                f"{new} prints were lost, since they came faster than they could be shown: the "
                f"buffer has {self._bytes.size} bytes. Print less, or set {SIZE_VARIABLE} to more "
                "before the first program that prints",
                RuntimeWarning,
                stacklevel=2,
            )


def ring_bytes() -> int:
    """The bytes of a ring: its head, and what the environment asks for, up to a power of two.

    Raises:
        ValueError: the environment variable is not a positive number.
    """
    asked = os.environ.get(SIZE_VARIABLE, str(DEFAULT_BYTES))
    if not asked.isdecimal():
        raise ValueError(f"{SIZE_VARIABLE} must be a number of bytes, not {asked!r}")
    return RING_HEAD_BYTES + power_of_two(max(int(asked), FEWEST_BYTES))
