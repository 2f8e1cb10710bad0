"""The user's loops and branches, as the nodes of a Plan refer to them."""

from __future__ import annotations

from dataclasses import dataclass

from tracegraph.user_source import Source


@dataclass(frozen=True, slots=True)
class Construct:
    """The loop or branch of the user's that a node runs, and how.

    `name` is what the user called. `steps`, of a loop, is the number of its steps where that is
    known before it runs, and `max_steps` a bound on it. `schedule` names the way in which the graph
    carries it out, and `why` says what it was chosen for. `pinned` is the way that the user asked
    for, and `unroll` how many steps one iteration is to make.
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
    """A loop or branch that has no node of its own: what it runs stands in the graph around it.

    `parts` counts its branches, and is 1 for a loop.
    """

    construct: Construct
    parts: int
    is_loop: bool
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A branch of what is inlined, or the body of a loop."""

    inlined: Inlined
    number: int
