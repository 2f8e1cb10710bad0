"""Mailbox: pinned host memory in which the kernels of one executable report to the host.

    word 0        0, or 1 + the number of the failure that came first
    word 1 + i    the steps of monitor i

Kernels write with plain stores at any time, and the host reads at any time.
"""

from __future__ import annotations

import numpy as np

from lowering.cuda.interface import Driver

WORD = 8


class Mailbox:
    """One executable's words."""

    def __init__(self, driver: Driver, monitors: int) -> None:
        self.memory = driver.allocate_host(WORD * (1 + monitors))
        self._words = self.memory.bytes.view(np.int64)
        self._words[:] = 0

    @property
    def failure_address(self) -> int:
        """Where kernels report a failure."""
        return self.memory.pointer

    def count_address(self, monitor: int) -> int:
        """Where kernels count the steps of a monitor."""
        return self.memory.pointer + WORD * (1 + monitor)

    def take_failure(self) -> int | None:
        """The number of the failure reported since the last call, or None."""
        word = int(self._words[0])
        self._words[0] = 0
        return word - 1 if word else None

    def count(self, monitor: int) -> int:
        """The steps that a monitor has counted."""
        return int(self._words[1 + monitor])

    def reset_counts(self) -> None:
        """Set all step counts to zero."""
        self._words[1:] = 0
