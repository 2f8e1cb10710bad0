"""Schedules of loops: a WHILE node with one step in an iteration, or unrolled, or one kernel whose
threads share each step, or make all steps of one lane each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from math import inf
from typing import NamedTuple

from lowering.draft.draft_nodes import (
    DraftBranch,
    DraftKernel,
    DraftLoop,
    DraftNode,
    FinishedNode,
    node_writes,
)
from lowering.plan.construct import Construct
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.lane_nests import LaneNests
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.target.scope import Scope
from lowering.plan.target.target import Costs, PersistentCosts
from lowering.scheduling import one_kernel, per_lane
from lowering.scheduling.buffer_rotation import Rotation
from lowering.scheduling.cost_model import Leaf, bound, skipped, work
from lowering.scheduling.persistent_time import fastest
from lowering.scheduling.schedule_records import Estimate, Schedule
from lowering.scheduling.unrolling import Copies, copies_of, rotation_in
from tracegraph.dtypes import BOOL
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType, scalar_type

MOST_NODES = 32
"""Nodes that unrolling may make of a body: each costs about 3 µs when the graph is built."""

PRODUCT_LEAVES = "a product leaves its body"
"""Why a loop makes no steps past its end: a product cannot be skipped."""


@dataclass(frozen=True)
class Loop:
    """A loop in its block.

    `moving` are the buffers whose addresses differ from call to call. `new_flag` makes a buffer of
    the block. `scope` is what a kernel is to have, if that is set for all. `is_read_later` says
    which buffers others may read when the loop has ended.
    """

    node: DraftLoop
    costs: Costs
    moving: frozenset[Buffer]
    new_flag: Callable[[ArrayType], Buffer]
    persistent: PersistentCosts | None
    scope: Scope | None = None
    is_read_later: Callable[[Buffer], bool] = lambda _: True
    _copies: dict[tuple[int, bool], Copies] = field(default_factory=dict)
    _rotations: dict[bool, Rotation] = field(default_factory=dict)

    @property
    def construct(self) -> Construct:
        """What the user called."""
        return self.node.construct

    @property
    def body(self) -> Sequence[DraftNode]:
        """The nodes of the body."""
        return self.node.body.nodes

    @property
    def no_gain(self) -> str | None:
        """Why it stays a node where that is fastest."""
        return "its body takes longer" if self.costs.loop_iteration else None

    def gain(self, time: float) -> str:
        """Why it has another schedule, which saves some µs in all."""
        return f"saves about {time / max(self.construct.expected_steps, 1):.1f} µs a step"

    @cached_property
    def lanes(self) -> LaneNests | str:
        """The lanes of the loop, or why it has none."""
        return per_lane.lanes_in(self.node)

    @cached_property
    def unskippable(self) -> str | None:
        """Why no step may be skipped, if something outside of the body reads what its library calls
        write, or a kernel might not end.
        """
        owned = self.node.body.owned
        calls = [node for node in self.body if isinstance(node, FinishedNode)]
        for node in calls:
            if node.plan_node.if_skipped == "counted":
                return f"{node.plan_node.noun} inside"
        leaves = any(not owned.issuperset(node_writes(node)) for node in calls)
        return PRODUCT_LEAVES if leaves else None

    def copies(self, count: int, skipping: bool) -> Copies:
        """Copies of the body in a row, some of which may be skipped.

        They are the same object for counts after which the carries are in the same buffers.
        """
        if skipping not in self._rotations:
            self._rotations[skipping] = rotation_in(self.node, skipping)
        rotation = self._rotations[skipping]
        key = (count % rotation.order, skipping)
        if key not in self._copies:
            self._copies[key] = copies_of(rotation, self.node.condition, skipping, key[0])
        return self._copies[key]


# -- a WHILE node


def _no_obstacle(loop: Loop, _: int | None) -> None:
    return None


def _time_of_node(loop: Loop, _: int | None) -> Estimate:
    costs = loop.costs
    inside = sum(node.time for node in loop.body if isinstance(node, DraftLoop | DraftBranch))
    step = costs.loop_iteration + _Weights(loop)[tuple(loop.body)].run + inside
    return Estimate(costs.branch + loop.construct.expected_steps * step)


def _as_node(loop: Loop, _: Estimate, construct: Construct) -> list[DraftNode]:
    loop.node.construct = construct
    return [loop.node]


# -- unrolled


def _unrolling_obstacle(loop: Loop, factor: int | None) -> str | None:
    if any(isinstance(node, DraftLoop) for node in loop.body):
        return "a loop inside"
    if any(isinstance(node, DraftBranch) for node in loop.body):
        return "a branch inside stays a node"
    for node in loop.body:
        if isinstance(node, FinishedNode) and node.plan_node.if_skipped == "stays":
            return f"{node.plan_node.noun} inside"
    if loop.unskippable:
        if factor is None and not list(_factors(loop)):
            return loop.unskippable
        if factor is not None and not _unrolled(loop, factor).counted:
            return loop.unskippable
    return None


def _time_of_unrolled(loop: Loop, factor: int | None) -> Estimate:
    """The best number of steps in an iteration, or the one that is asked for."""
    if factor is not None:
        return _unrolled(loop, factor)
    weigh = _Weights(loop)
    options = [(_time(loop, weigh, each), -each) for each in _factors(loop)]
    if not options:
        return _unrolled(loop, 2)
    time, best = min(options)
    return replace(_unrolled(loop, -best), time=time)


def _unrolled(loop: Loop, factor: int) -> Estimate:
    known = loop.construct.steps
    if known is not None and known <= factor:
        return Estimate(inf, 0, counted=True)
    return Estimate(inf, factor, counted=known is not None and known % factor == 0)


def _factors(loop: Loop) -> Iterator[int]:
    """The steps that an iteration may make: powers of two, and the divisors of a known number."""
    known = loop.construct.steps
    for factor in range(2, MOST_NODES + 1):
        if factor & (factor - 1) == 0 or (known is not None and known % factor == 0):
            if loop.unskippable and not _unrolled(loop, factor).counted:
                continue
            copies = loop.copies(factor, known is None or known % factor != 0)
            together = len(copies.once) + len(copies.idle)
            if factor * len(copies.each) + together <= MOST_NODES:
                yield factor


class _Weight(NamedTuple):
    """The time of some nodes when they run and when they are skipped, in µs; how many of them have
    addresses that move, and how many there are.
    """

    run: float
    skipped: float
    moving: int
    nodes: int


class _Weights(dict[tuple[DraftNode, ...], _Weight]):
    """Weights by nodes. Each tuple is weighed once, because most copies share their nodes."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self._loop = loop

    def __missing__(self, nodes: tuple[DraftNode, ...]) -> _Weight:
        costs = self._loop.costs
        leaves: list[Leaf] = [s for s in nodes if isinstance(s, DraftKernel | FinishedNode)]
        found = self[nodes] = _Weight(
            costs.kernel * len(leaves) + work(costs, leaves),
            (costs.kernel + costs.check) * len(leaves) + skipped(costs, leaves),
            bound(leaves, self._loop.moving),
            len(leaves),
        )
        return found


def _time(loop: Loop, weigh: _Weights, factor: int) -> float:
    """A whole loop, whose iterations make `factor` steps each."""
    costs, steps, known = (
        loop.costs,
        loop.construct.expected_steps,
        loop.construct.steps is not None,
    )
    count = steps if known and steps <= factor else factor
    skipping = not known or (steps > factor and steps % factor != 0)
    copies = loop.copies(count, skipping)
    body, once, idle = weigh[copies.each], weigh[copies.once], weigh[copies.idle]
    updates = costs.update * ((count - 1) * body.moving + once.moving + idle.moving)
    if known and steps <= factor:
        return steps * body.run + once.run + updates
    trips = ceil_div(steps, factor) if known else steps / factor
    past_end = trips * factor - steps if known else (factor - 1) / 2
    checked = costs.check * body.nodes if skipping else 0.0
    trip = costs.loop_iteration + once.run + idle.skipped
    run = steps * (body.run + checked) + past_end * body.skipped
    return costs.branch + trips * trip + run + updates


def _as_unrolled(loop: Loop, _: Estimate, construct: Construct) -> list[DraftNode]:
    loop.node.construct = construct  # the copies are made with the nodes
    return [loop.node]


# -- one kernel


def _one_kernel_obstacle(loop: Loop, _: int | None) -> str | None:
    reaches = loop.persistent is None or loop.persistent.exchange is not None
    return one_kernel.obstacle(loop.node.body, reaches_devices=reaches)


def _time_in_one_kernel(loop: Loop, _: int | None) -> Estimate:
    if loop.persistent is None or loop.scope is not None:
        scope, least = loop.scope or Scope(1, 1), one_kernel.least_threads(loop.node.body)
        return Estimate(inf, scope=replace(scope, threads=max(scope.threads, least)))
    step, scope = fastest(loop.node.body, loop.persistent)
    return Estimate(loop.costs.kernel + loop.construct.expected_steps * step, scope=scope)


def _as_one_kernel(loop: Loop, estimate: Estimate, construct: Construct) -> list[DraftNode]:
    node = loop.node
    one_kernel.absorb(node.body)
    node.construct, node.scope = construct, estimate.scope
    node.entry = loop.new_flag(scalar_type(BOOL))
    return [node]


# -- a thread for each lane


def _per_lane_obstacle(loop: Loop, _: int | None) -> str | None:
    return loop.lanes if isinstance(loop.lanes, str) else None


def _time_per_lane(loop: Loop, _: int | None) -> Estimate:
    assert isinstance(loop.lanes, LaneNests)
    scope = per_lane.scope_of(loop.lanes.extents)
    if loop.persistent is None:
        return Estimate(inf, scope=scope)
    steps, nodes = loop.construct.expected_steps, loop.node.body
    once, step = per_lane.times(nodes, loop.lanes, loop.persistent, loop.costs)
    return Estimate(loop.costs.kernel + once + steps * step, scope=scope)


def _per_lane(loop: Loop, estimate: Estimate, construct: Construct) -> list[DraftNode]:
    assert isinstance(loop.lanes, LaneNests)
    before, behind = per_lane.hand_out(loop.node, loop.lanes, loop.is_read_later, loop.new_flag)
    nodes = _as_one_kernel(loop, estimate, construct)
    per_lane.keep_apart(loop.node.body, loop.lanes)
    return [*before, *nodes, *behind]


LOOP_SCHEDULES: tuple[Schedule[Loop], ...] = (
    Schedule("conditional", _no_obstacle, _time_of_node, _as_node),
    Schedule(
        "unrolled",
        _unrolling_obstacle,
        _time_of_unrolled,
        _as_unrolled,
        "with loops that make 3 steps an iteration",
        tried_steps=3,
    ),
    Schedule(
        one_kernel.SCHEDULE,
        _one_kernel_obstacle,
        _time_in_one_kernel,
        _as_one_kernel,
        "with each loop in one kernel",
    ),
    Schedule(
        per_lane.SCHEDULE,
        _per_lane_obstacle,
        _time_per_lane,
        _per_lane,
        "with a thread for each lane of loops whose lanes never meet",
    ),
)
