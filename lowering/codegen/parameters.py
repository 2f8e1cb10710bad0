"""Kernel parameters: what a generated kernel is launched with, each eight bytes wide."""

from __future__ import annotations

from dataclasses import dataclass

from lowering.codegen.print_records import Record
from lowering.plan.buffer import Buffer


@dataclass(frozen=True, slots=True)
class ConditionHandle:
    """The handle of a condition, an unsigned 64-bit number."""

    condition: int


@dataclass(frozen=True, slots=True)
class StopFlag:
    """The address of a 32-bit word in device memory: not zero while loops are to end."""


@dataclass(frozen=True, slots=True)
class FailureWord:
    """The address of 64 bits in mapped host memory: zero, or 1 + the number of a failure."""


@dataclass(frozen=True, slots=True)
class StepCount:
    """The address of a signed 64-bit number in mapped host memory: the steps of a monitor."""

    monitor: int


@dataclass(frozen=True, slots=True)
class PrintRing:
    """The address of the device's print ring, a `tg_ring` in mapped host memory."""


@dataclass(frozen=True, slots=True)
class PrintSite:
    """The number by which the print ring knows print `site` of the Plan and its records."""

    site: int
    record: Record


@dataclass(frozen=True, slots=True)
class Workspace:
    """The address of memory of the node's own, 256-byte aligned.

    It is zero before the first launch, and must not be touched between launches.
    """

    nbytes: int


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The address of 64 bits in device memory, which have the address of a buffer."""

    buffer: Buffer


Channel = StopFlag | FailureWord | StepCount | PrintRing | PrintSite
"""What connects a kernel with the host while it runs."""

Parameter = Buffer | TableEntry | ConditionHandle | Channel | Workspace
"""What a kernel is launched with. A buffer is passed as its address."""
