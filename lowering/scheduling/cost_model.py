"""Which schedule a loop or branch gets: what is possible, what it would take, and what is asked.

The estimates are those of `lowering.costs`. They need only be good enough to tell a branch of a few
small kernels from one of many, and a short body from a long one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import add
from statistics import fmean
from typing import Literal, NamedTuple, Protocol

from lowering.plan.conditional_nodes import ConditionalNode, WhileNode
from lowering.plan.nodes import Graph, Node
from lowering.plan.rounding import ceil_div
from lowering.scheduling.device_costs import Costs, bound, skipped, work

Kind = Literal["conditional", "predicated", "unrolled"]

TYPICAL_STEPS = 50
"""What a loop is taken to make if that depends on data."""

MOST_NODES = 32
"""Nodes that unrolling may make of a body: each costs about 3 µs when the graph is built."""

LEAST_GAIN = 0.05
"""Part of its time that a loop must gain to be unrolled: longer graphs are built more slowly."""


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


@dataclass(frozen=True, slots=True)
class Decision:
    """The schedule chosen, and why; with `steps` made by one iteration, checked unless `counted`.

    A loop that is unrolled as a whole has no iterations: `steps` is 0.
    """

    kind: Kind
    why: str | None = None
    steps: int = 1
    counted: bool = False


# -- branches ----------------------------------------------------------------------------------


NOTHING = "nothing inside"
"""Why what only arrays without elements pass through has no other schedule."""


def branch_obstacle(node: ConditionalNode) -> str | None:
    """Why a branch cannot be predicated, None if it can."""
    inner = [each for graph in node.bodies for each in graph.nodes]
    found = _body_obstacle(inner)
    if found is not None:
        return found
    return next((f"{each.noun} inside" for each in inner if each.if_skipped != "idle"), None)


def _body_obstacle(inner: Sequence[Node]) -> str | None:
    """Why none of these nodes can stand outside of the branch or loop that they are in."""
    if any(isinstance(each, WhileNode) for each in inner):
        return "a loop inside"
    if any(each.bodies for each in inner):
        return "a branch inside stays a node"
    if not inner:
        return NOTHING
    return next((f"{each.noun} inside" for each in inner if each.if_skipped == "stays"), None)


def decide_branch(node: ConditionalNode, costs: Costs, asked: Asked) -> Decision:
    """How a branch runs that has no obstacle."""
    if asked.schedule == "conditional":
        return Decision("conditional", asked.why)
    if asked.schedule == "predicated":
        return Decision("predicated", asked.why)
    branches = [graph.nodes for graph in node.bodies]
    as_node = fmean([_as_node(costs, taken) for taken in branches])
    predicated = fmean(list(_predicated(costs, branches)))
    if predicated < as_node:
        return Decision("predicated", f"saves about {as_node - predicated:.1f} µs")
    return Decision("conditional", "no gain without a node" if costs.branch else None)


def _as_node(costs: Costs, taken: Sequence[Node]) -> float:
    return costs.branch + costs.kernel_in_branch * len(taken) + work(costs, taken)


def _predicated(costs: Costs, branches: Sequence[Sequence[Node]]) -> Iterator[float]:
    """All branches beside each other, for each that may be the one that runs."""
    kernel = costs.kernel + costs.check
    own = [kernel * len(taken) + work(costs, taken) for taken in branches]
    lengths = [kernel * len(branch) for branch in branches]
    longest = _of_others(lengths, max, 0.0)
    beside = _of_others(
        [costs.beside * len(branch) + skipped(costs, branch) for branch in branches], add, 0.0
    )
    for taken, longest_other, others in zip(own, longest, beside, strict=True):
        yield costs.fork + max(taken, longest_other) + others


def _of_others(
    values: Sequence[float], combine: Callable[[float, float], float], nothing: float
) -> Iterator[float]:
    """For each value, all the others combined: those before it with those after it."""
    before = accumulate(values[:-1], combine, initial=nothing)
    after = list(accumulate(values[:0:-1], combine, initial=nothing))
    return map(combine, before, reversed(after))


# -- loops -------------------------------------------------------------------------------------


class Copies(Protocol):
    """What an iteration of several steps is made of."""

    @property
    def each(self) -> Graph:
        """The nodes that each step has."""

    @property
    def once(self) -> Graph:
        """Those that all have together."""

    @property
    def idle(self) -> Graph:
        """Those that have something to do only where steps are skipped."""


Iteration = Callable[[int, bool], Copies]
"""An iteration of so many steps, and whether some of them may be skipped.

Graphs that are the same for several numbers of steps are best the same object: each is costed once.
"""


def loop_obstacle(loop: WhileNode) -> str | None:
    """Why the body of a loop cannot be copied, None if it can."""
    return _body_obstacle(loop.body.nodes)


def decide_loop(
    loop: WhileNode, costs: Costs, asked: Asked, leaving: str | None, iteration: Iteration
) -> Decision:
    """How a loop runs that has no obstacle; `leaving`: why it must make no step past the end."""
    if asked.schedule == "conditional":
        return Decision("conditional", asked.why)
    known = loop.construct.steps if loop.construct else None
    if asked.schedule == "unrolled" and asked.unroll is not None:
        return _unrolled(asked.unroll, known, asked.why)
    steps = TYPICAL_STEPS if known is None else known
    if known is None and loop.construct and loop.construct.max_steps is not None:
        steps = max(min(steps, loop.construct.max_steps), 1)
    weigh = _Weights(costs).__getitem__
    as_node = costs.branch + steps * (costs.trip + weigh(loop.body).copy)
    options = [
        (_time(costs, weigh, iteration, steps, factor, known is not None), -factor)
        for factor in _factors(iteration, known)
        if leaving is None or _unrolled(factor, known, "").counted
    ]
    if asked.schedule == "unrolled":
        factor = -min(options)[1] if options else 2
        return _unrolled(factor, known, asked.why)
    if not options or min(options)[0] > as_node * (1 - LEAST_GAIN):
        if leaving is not None:
            return Decision("conditional", leaving if costs.trip else None)
        return Decision("conditional", "its body takes longer" if costs.trip else None)
    time, factor = min(options)
    gain = (as_node - time) / max(steps, 1)
    return _unrolled(-factor, known, f"saves about {gain:.1f} µs a step")


def _unrolled(factor: int, known: int | None, why: str) -> Decision:
    if known is not None and known <= factor:
        return Decision("unrolled", why, 0, counted=True)
    counted = known is not None and known % factor == 0
    return Decision("unrolled", why, factor, counted)


def _factors(iteration: Iteration, known: int | None) -> Iterator[int]:
    """The steps that an iteration may make: powers of two, and the divisors of a known number."""
    for factor in range(2, MOST_NODES + 1):
        if factor & (factor - 1) == 0 or (known is not None and known % factor == 0):
            made = iteration(factor, known is None or known % factor != 0)
            together = len(made.once.nodes) + len(made.idle.nodes)
            if factor * len(made.each.nodes) + together <= MOST_NODES:
                yield factor


class _Weight(NamedTuple):
    """What the nodes of a graph take when they run, when they are skipped, and when addresses move;
    and how many there are.
    """

    copy: float
    skipped: float
    bound: int
    nodes: int


class _Weights(dict[Graph, _Weight]):
    """By graph; each is weighed once, for most iterations share what they are made of."""

    def __init__(self, costs: Costs) -> None:
        super().__init__()
        self._costs = costs

    def __missing__(self, graph: Graph) -> _Weight:
        costs, leaves = self._costs, graph.nodes
        found = self[graph] = _Weight(
            costs.kernel * len(leaves) + work(costs, leaves),
            (costs.kernel + costs.check) * len(leaves) + skipped(costs, leaves),
            bound(leaves),
            len(leaves),
        )
        return found


def _time(
    costs: Costs,
    weigh: Callable[[Graph], _Weight],
    iteration: Iteration,
    steps: int,
    factor: int,
    known: bool,
) -> float:
    """A whole loop, of which an iteration makes `factor` steps."""
    copies = steps if known and steps <= factor else factor
    skipping = not known or (steps > factor and steps % factor != 0)
    made = iteration(copies, skipping)
    body, once, idle = weigh(made.each), weigh(made.once), weigh(made.idle)
    updates = costs.update * ((copies - 1) * body.bound + once.bound + idle.bound)
    if known and steps <= factor:
        return steps * body.copy + once.copy + updates
    trips = ceil_div(steps, factor) if known else steps / factor
    past_end = trips * factor - steps if known else (factor - 1) / 2
    checked = costs.check * body.nodes if skipping else 0.0
    each = body.copy + checked
    trip = costs.trip + once.copy + idle.skipped
    return costs.branch + trips * trip + steps * each + past_end * body.skipped + updates
