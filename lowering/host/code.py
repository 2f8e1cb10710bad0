"""What runs a plan on the CPU: the interpreter, with or without tuning, or machine code.

Each kind makes a function of a plan; all else, such as memory, checks of arguments, locks and
limits, is the executable's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from lowering.host.arena import Array
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.section_times import SectionTimes
from lowering.host.source.plan_function import Body, Copied
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class ExecutableMemory:
    """The memory of an executable: its arena, the arrays of scratch and constants, and more bytes
    from `allocate`.
    """

    arena: Array
    arrays: Mapping[Buffer, Array]
    allocate: Callable[[int], Array]
    overlaps: Overlaps


@dataclass(frozen=True, slots=True)
class Code:
    """A function of a plan. `copied` counts while it runs, `section_times` measures.

    `finish` makes it as fast as it becomes, which else happens while it is used.
    """

    body: Body
    copied: Copied
    section_times: SectionTimes
    finish: Callable[[], None] = field(default=lambda: None)


class MakeCode(Protocol):
    """Makes the code of a plan: see `HostExecutable` for `poison` and `order`."""

    def __call__(
        self, plan: Plan, memory: ExecutableMemory, *, poison: bool, order: Random | None
    ) -> Code:
        """The code."""
