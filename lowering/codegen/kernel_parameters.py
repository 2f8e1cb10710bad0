"""Kernel parameters: what a generated kernel is launched with. Each is eight bytes wide."""

from __future__ import annotations

from lowering.plan.nests.buffer import Buffer
from lowering.plan.records.print_records import Record
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ConditionHandle:
    """The handle of a condition, an unsigned 64-bit number."""

    condition: int


@dataclass(frozen=True, slots=True)
class StopFlagAddress:
    """The address of a 32-bit word in device memory. While it is not zero, loops end.

    Those whose end the devices of a mesh agree about end by themselves if it is greater than 1.
    """


@dataclass(frozen=True, slots=True)
class FailureWord:
    """The address of a 64-bit word in mapped host memory: 0, or 1 + the number of a failure."""


@dataclass(frozen=True, slots=True)
class StepCount:
    """The address of a signed 64-bit number in mapped host memory: the steps a monitor counts."""

    monitor: int


@dataclass(frozen=True, slots=True)
class PrintRingAddress:
    """The address of the device's print ring, a `tg_ring` in mapped host memory."""


@dataclass(frozen=True, slots=True)
class PrintSiteNumber:
    """The number under which the print ring registered print `site` of the Plan."""

    site: int
    record: Record


@dataclass(frozen=True, slots=True)
class CallRingAddress:
    """The address of the stream's callback ring, a `tg_ring` in mapped host memory."""


@dataclass(frozen=True, slots=True)
class CallSiteNumber:
    """The number under which the callback ring registered callback `site` of the Plan.

    `record` is the layout of its arguments.
    """

    site: int
    record: Record


@dataclass(frozen=True, slots=True)
class Answer:
    """The address of the answer of callback `site`, a `tg_answer` in mapped host memory.

    `record` is the layout of its results.
    """

    site: int
    record: Record


@dataclass(frozen=True, slots=True)
class WorkspaceAddress:
    """The address of memory that the node owns, 256-byte aligned.

    It is zero before the first launch, and keeps its content between launches.
    """

    nbytes: int


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The address of a 64-bit word in device memory that holds the address of a buffer."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is the same in every launch, so that kernels that differ in it share a text.

    A pointer is null if it is 0.
    """

    value: int


Channel = (
    StopFlagAddress
    | FailureWord
    | StepCount
    | PrintRingAddress
    | PrintSiteNumber
    | CallRingAddress
    | CallSiteNumber
    | Answer
)
"""Parameters through which a running kernel communicates with the host."""

Parameter = Buffer | TableEntry | ConditionHandle | Channel | WorkspaceAddress | Number
"""What a kernel is launched with. A buffer is passed as its address."""
