"""What executables need of a plan's code, interpreted or compiled: a function of arguments.

All else, such as memory, checks of arguments, locks and limits, is the executable's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

import numpy as np

from lowering.host.arena import POISON, Array
from lowering.host.result_pool import RESULTS, is_pooled
from lowering.host.section_times import SectionTimes
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan
from tracegraph import progress
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType
from tracegraph.staging.calls.clock import clock

Overlaps = Callable[[Buffer, Buffer], bool]
"""Whether two buffers share memory."""

Body = Callable[[Sequence[Any], Callable[[], None] | None], Sequence[Array]]
"""Takes the arguments and the function that loops call at every step; returns the results."""


@dataclass(frozen=True, slots=True)
class ExecutableMemory:
    """The memory of an executable: its arena, the arrays of scratch and constants, and more bytes
    from `allocate`.
    """

    arena: Array
    arrays: Mapping[Buffer, Array]
    allocate: Callable[[int], Array]
    overlaps: Overlaps


class Copied:
    """Counts the bytes of arguments that could not be read in place.

    `last` has the time and the bytes of the last copy for each input, by number.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.last: dict[int, tuple[float, int]] = {}

    def contiguous(self, number: int, argument: Any, dtype: np.dtype[Any] | None = None) -> Array:
        """A counted copy of an array or a number, in row-major order, for an input."""
        copy: Array = np.array(argument, dtype, order="C")
        self.nbytes += copy.nbytes
        self.last[number] = clock(), copy.nbytes
        return copy


def nothing() -> None:
    """Does nothing, where there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Code:
    """A function of a plan. `copied` counts while it runs, `section_times` measures.

    `finish` makes it as fast as it becomes, which else happens while it is used.
    """

    body: Body
    copied: Copied
    section_times: SectionTimes
    finish: Callable[[], None] = nothing


class MakeCode(Protocol):
    """Makes the code of a plan: see `HostExecutable` for `poison` and `order`."""

    def __call__(
        self, plan: Plan, memory: ExecutableMemory, *, poison: bool, order: Random | None
    ) -> Code:
        """The code."""


def result_maker(type_: ArrayType) -> Callable[[], Array]:
    """A function that makes uninitialised results of a type."""
    if is_pooled(type_):
        return RESULTS.maker(type_)
    shape, dtype = type_.shape, type_.dtype
    return lambda: np.empty(shape, dtype)


def fill_with_poison(memory: Array) -> None:
    """Fill contiguous memory with `POISON`."""
    memory.reshape(-1).view(np.uint8).fill(POISON)


def with_bars(
    plan: Plan,
    body: Body,
    before: Callable[[], object] = nothing,
    after: Callable[[], object] = nothing,
) -> Body:
    """The function with the bars of the plan's loops, if any report progress.

    `before` and `after` are called while the bars are there.
    """
    if not plan.monitors:
        return body

    def run(arguments: Sequence[Any], check_time: Callable[[], None] | None) -> Sequence[Array]:
        with progress.bars():
            before()
            try:
                return body(arguments, check_time)
            finally:
                after()

    return run
