"""PrintRing: a ring buffer in pinned memory, from printing kernels to the host.

All programs of a device share it, so that prints appear in the order in which they were made. A
kernel appends a record, in the layout of `lowering.plan.records.print_records`, and moves the
head; the host prints the records from the tail on, and moves the tail. Records that do not fit are
dropped and counted.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from typing import ClassVar

import numpy as np

from lowering.cuda.effects.ring import HEAD, LOST, TAIL, Ring
from lowering.cuda.interface import HostAllocation
from lowering.plan.records.print_records import Record
from tracegraph.ir.effects import PrintFormat


class PrintSite:
    """A print of a program: its format, and the layout of its records."""

    __slots__ = ("__weakref__", "format", "number", "record")

    def __init__(self, number: int, format_: PrintFormat, record: Record) -> None:
        self.number = number
        self.format = format_
        self.record = record


class PrintRing(Ring[PrintSite]):
    """The ring, and the sites that print into it."""

    size_variable: ClassVar[str] = "TRACEGRAPH_PRINT_BUFFER_BYTES"
    fewest_bytes: ClassVar[int] = 256

    def __init__(self, memory: HostAllocation) -> None:
        super().__init__(memory)
        self._lock = threading.Lock()
        self._texts: deque[str] = deque()
        self._known_losses = 0

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
        head, tail = self.head, self.tail
        while tail < head:
            number, nbytes = (int(word) for word in self._part(tail, 16).view(np.uint64))
            raw = self._part(tail, nbytes).tobytes()
            tail += nbytes
            self._words[TAIL] = tail
            site = self._sites.get(number)
            if site is not None:
                self._texts.append(site.format.render(site.record.arrays(raw)))

    def warn_of_losses(self) -> None:
        """Warn of records that were dropped since the last call."""
        lost = int(self._words[LOST])
        new, self._known_losses = lost - self._known_losses, lost
        if new:
            warnings.warn(
                f"{new} prints were lost, since they came faster than they could be shown: the "
                f"buffer has {self._bytes.size} bytes. Print less, or set {self.size_variable} to "
                "more before the first program that prints",
                RuntimeWarning,
                stacklevel=2,
            )
