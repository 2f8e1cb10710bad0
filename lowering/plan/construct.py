"""Constructs: the user's loops and branches, as the nodes of a Plan refer to them."""

from __future__ import annotations

from dataclasses import dataclass

from tracegraph.user_source import Source


@dataclass(frozen=True, slots=True)
class Construct:
    """A loop or branch of the user's program, and its schedule.

    `name` is the function that the user called. A loop has `steps` if their number is known before
    it runs, and `max_steps` if that is bounded. `schedule` is how the graph runs it, and `why` the
    reason. `pinned` is the schedule that the user asked for; `unroll`, the steps of an iteration.
    """

    name: str
    schedule: str
    why: str
    steps: int | None = None
    max_steps: int | None = None
    pinned: str | None = None
    unroll: int | None = None


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
