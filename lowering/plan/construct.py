"""Constructs: the user's loops and branches, as the nodes of a Plan refer to them."""

from __future__ import annotations

from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import Source

TYPICAL_STEPS = 50
"""The steps that a loop is taken to make if they depend on data."""


@dataclass(frozen=True, slots=True)
class Construct:
    """A loop or branch of the user's program, and its schedule.

    Args:
        name: what the user called.
        schedule: the name of its schedule.
        why: the reason for that schedule.
        copies: of a loop, the steps that one iteration makes; 0 if it has no node.
        host_driven: whether the host decides in place of the node.
        steps: of a loop, its steps, where they are known before it runs.
        max_steps: a bound on them.
        pinned: the schedule that the user asked for.
        unroll: the steps that the user asked one iteration to make.
        lanes: of a loop that runs while any of its lanes goes on, and changes no others, the
            extents of these lanes; likewise of a branch that runs if any lane takes it.
    """

    name: str
    schedule: str = "conditional"
    why: str = "takes any body"
    copies: int = 1
    host_driven: bool = False
    steps: int | None = None
    max_steps: int | None = None
    pinned: str | None = None
    unroll: int | None = None
    lanes: tuple[int, ...] | None = None

    @property
    def expected_steps(self) -> int:
        """The steps of a loop, estimated where they depend on data."""
        if self.steps is not None:
            return self.steps
        if self.max_steps is not None:
            return max(min(TYPICAL_STEPS, self.max_steps), 1)
        return TYPICAL_STEPS


@dataclass(frozen=True, slots=True, eq=False)
class Inlined:
    """A loop or branch without a node: its nodes are inlined into the graph around it.

    `parts` is the number of its branches; 1 for a loop.
    """

    construct: Construct
    parts: int
    is_loop: bool
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A branch of an inlined construct, or the body of an inlined loop."""

    inlined: Inlined
    number: int


Path = tuple[Part, ...]
"""The inlined loops and branches around some work, outermost first."""
