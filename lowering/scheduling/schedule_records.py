"""Schedule records: a way to run a loop or a branch, as data.

    Schedule := name, obstacle, estimate, apply, about

The pass in `schedule.py` asks each record of a tuple for its obstacle and its estimate, and applies
the one that takes the least time, or the one that is pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from lowering.draft.draft_nodes import DraftNode
from lowering.plan.construct import Construct
from lowering.plan.target.scope import Scope
from lowering.plan.target.target import Costs
from tracegraph.generated.dataclass import dataclass


class Subject(Protocol):
    """A loop or branch in its block, as its schedules see it."""

    @property
    def costs(self) -> Costs:
        """Those of the target."""

    @property
    def no_gain(self) -> str | None:
        """Why it keeps its node where no other schedule is faster."""

    def gain(self, time: float) -> str:
        """Why it has a schedule that saves some µs."""


S = TypeVar("S", bound=Subject)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a schedule would take.

    `time` is in µs, for the whole loop or branch. `steps` are those of one iteration of a loop; 0
    if no loop is left. If `counted`, no iteration makes a step past the end. A loop in one kernel
    has its `scope`.
    """

    time: float
    steps: int = 1
    counted: bool = False
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Schedule(Generic[S]):
    """A way to run a loop or branch `S`.

    Args:
        name: what users pin it by.
        obstacle: why it is impossible, None if it is not; given how many steps an iteration is to
            make, if that is pinned.
        estimate: its cost, given the same.
        apply: the nodes that replace the loop or branch; the construct says how it now runs.
        about: completes "a program runs …", where `tracegraph.testing` tries the schedule.
        tried_steps: how many steps an iteration makes then, if that can be chosen.
    """

    name: str
    obstacle: Callable[[S, int | None], str | None]
    estimate: Callable[[S, int | None], Estimate]
    apply: Callable[[S, Estimate, Construct], list[DraftNode]]
    about: str = ""
    tried_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The schedule that is asked for, and the steps of an iteration; by the user, or for all."""

    schedule: str | None = None
    unroll: int | None = None
    binding: bool = False

    @property
    def why(self) -> str:
        """The reason, in a table."""
        return "asked for" if self.binding else "set for all"
