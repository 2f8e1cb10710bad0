"""Plan -> Plan: loops and branches carried out in the way that takes the least time.

    IF, SWITCH   branches inlined as kernels with predicates on a flag
    WHILE        several steps in one iteration, or all of them without a node

A Plan has one node for each; here those go where something else is faster, or asked for. Inner ones
come first: what has no node any more may be inlined again. The results are the same, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import chain, count
from typing import Any

import numpy as np

from lowering.allocation.assign import ALIGNMENT
from lowering.plan.buffer import Buffer
from lowering.plan.conditional_nodes import ConditionalNode, SwitchNode, WhileNode
from lowering.plan.construct import Construct, Inlined, Part
from lowering.plan.graph_edit import EMPTY, parallel, single, splice
from lowering.plan.kernel import Predicate, SetCondition
from lowering.plan.nodes import Graph, Node, walk
from lowering.plan.plan import Plan
from lowering.plan.rounding import round_up
from lowering.scheduling.buffer_rotation import Rotation, rotation_of
from lowering.scheduling.cost_model import (
    NOTHING,
    Asked,
    Decision,
    branch_obstacle,
    decide_branch,
    decide_loop,
    loop_obstacle,
)
from lowering.scheduling.device_costs import Costs
from lowering.scheduling.overrides import Choices, declared
from lowering.scheduling.predication import BOOL, Settings, branch, set_conditions
from lowering.scheduling.unrolling import (
    PLACE,
    Steps,
    all_steps,
    counted_copies,
    predicated_copies,
    settle,
    steps_of,
)
from tracegraph.errors import UnschedulableError
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType, scalar_type


def schedule(plan: Plan, costs: Costs) -> Plan:
    """The Plan with a schedule for each of its loops and branches.

    Raises:
        UnschedulableError: the user pinned one that is not possible.
        ValueError: the environment variable of `lowering.choices` has a word that means nothing.
    """
    if not plan.conditions:
        return plan
    choices = declared()
    nodes = [node for node in walk(plan.graph) if isinstance(node, ConditionalNode)]
    pinned = any(node.construct and node.construct.pinned for node in nodes)
    if costs.control_is_free and choices == Choices() and not pinned:
        return plan
    return _Scheduling(plan, costs, choices).scheduled()


class _Scheduling:
    """One Plan under way, and the flags added to it so far."""

    def __init__(self, plan: Plan, costs: Costs, choices: Choices) -> None:
        self._plan = plan
        self._costs = costs
        self._choices = choices
        self._touched = {node: node.accessed_buffers for node in walk(plan.graph)}
        self._users = Counter(chain.from_iterable(self._touched.values()))
        self._numbers = count(1 + max((b.number for b in plan.offsets), default=-1))
        self._offsets = dict(plan.offsets)
        self._arena_bytes = plan.arena_bytes

    def scheduled(self) -> Plan:
        graph = self._graph(self._plan.graph)
        return replace(
            self._plan, graph=graph, offsets=self._offsets, arena_bytes=self._arena_bytes
        )

    def _graph(self, graph: Graph) -> Graph:
        """A graph or body, from the inside out."""
        flags: dict[int, Buffer] = {}
        dropped: set[int] = set()
        conditional = [node for node in graph.nodes if isinstance(node, ConditionalNode)]
        if not conditional:
            return graph
        known = set_conditions(graph)
        replaced: dict[Node, Graph] = {}
        for node in conditional:
            if isinstance(node, WhileNode):
                replaced[node] = self._loop(node, dropped)
            else:
                replaced[node] = self._branch(node, known.get(node.condition), flags, dropped)
        dropped |= flags.keys()
        spliced = splice(graph, lambda node: replaced[node] if node in replaced else single(node))
        return settle(spliced, Settings(flags, frozenset(dropped))) if dropped else spliced

    # -- branches

    def _branch(
        self,
        old: ConditionalNode,
        found: SetCondition | None,
        flags: dict[int, Buffer],
        dropped: set[int],
    ) -> Graph:
        node = old.with_bodies([self._graph(body) for body in old.bodies])
        obstacle = "its condition is set elsewhere" if found is None else branch_obstacle(node)
        asked = _asked(node.construct, self._choices.branches)
        if obstacle == NOTHING and asked.schedule != "conditional":
            dropped.add(node.condition)
            return EMPTY
        if found is None or obstacle is not None:
            return single(self._hindered(node, obstacle, asked))
        decision = decide_branch(node, self._costs, asked)
        if decision.kind == "conditional":
            return single(_explained(node, decision))
        switch = isinstance(node, SwitchNode)
        flag = flags[node.condition] = self._flag(found.value.dtype if switch else BOOL)
        known = node.construct or Construct("-", "-", "-")
        why = decision.why or known.why
        graphs = node.bodies
        inlined = Inlined(
            replace(known, schedule="predicated", why=why), len(graphs), False, node.sources
        )
        values = range(len(graphs)) if switch else (True, False)
        return parallel(
            [
                branch(body, Predicate(flag, value), Part(inlined, number))
                for number, (body, value) in enumerate(zip(graphs, values, strict=False))
            ]
        )

    # -- loops

    def _loop(self, old: WhileNode, dropped: set[int]) -> Graph:
        node = replace(old, body=self._graph(old.body))
        found = set_conditions(node.body).get(node.condition)
        obstacle = "its condition is set elsewhere" if found is None else loop_obstacle(node)
        asked = _asked(node.construct, self._choices.loops, self._choices.unroll)
        if obstacle is not None:
            return single(self._hindered(node, obstacle, asked))
        leaving = self._leaving(node.body, old.body)
        iteration = self._iterations(node, old.body)
        decision = decide_loop(node, self._costs, asked, leaving, iteration)
        if decision.kind == "unrolled" and leaving is not None and not decision.counted:
            return single(self._hindered(node, leaving, asked))
        if decision.kind == "conditional":
            return single(_explained(node, decision))
        if decision.steps == 0:
            dropped.add(node.condition)
            known = node.construct
            assert known is not None
            assert known.steps is not None
            steps = self._placed(iteration(known.steps, False), known.steps)
            return self._without_loop(node, steps, decision)
        steps = self._placed(iteration(decision.steps, not decision.counted), decision.steps)
        if decision.counted:
            body = counted_copies(steps)
        else:
            flags = [self._flag(BOOL) for _ in range(decision.steps)]
            place = self._flag(PLACE) if steps.rotation.carries else None
            body = predicated_copies(steps, flags, place)
        return single(_explained(replace(node, body=body), decision))

    def _leaving(self, body: Graph, old: Graph) -> str | None:
        """Why a loop must make no step past its end: a call whose results are read outside.

        Inner loops may have gone from the body, and left their calls in it; users are counted in
        the `old` one.
        """
        calls = [node for node in body.nodes if node.if_skipped == "runs"]
        inside = self._inside(old) if calls else {}
        for node in calls:
            if any(b.space != "scratch" or self._users[b] > inside[b] for b in node.writes):
                return f"{node.noun} leaves its body"
        return None

    def _iterations(self, node: WhileNode, old: Graph) -> Callable[[int, bool], Steps]:
        """What iterations of a loop are made of, by their steps, and whether some may be skipped.

        Those that leave the carries at the same place are the same. Which scratch nothing but the
        body touches is found in the `old` one.
        """
        users = self._users
        inside = self._inside(old).items()
        local = {b for b, n in inside if b.space == "scratch" and n == users[b]}
        called = any(each.if_skipped == "runs" for each in node.body.nodes)
        rotations: dict[bool, Rotation] = {}
        steps: dict[bool, Steps] = {}
        reached: dict[tuple[int, bool], Steps] = {}

        def iteration(count: int, skipping: bool) -> Steps:
            if skipping not in steps:
                wary = skipping and called  # to a body without calls it makes no difference
                if wary not in rotations:
                    rotations[wary] = rotation_of(node.body, local, self._offsets, wary)
                steps[skipping] = steps_of(rotations[wary], node.condition, skipping)
            place = count % steps[skipping].rotation.order
            if (place, skipping) not in reached:
                reached[place, skipping] = replace(steps[skipping], count=place)
            return reached[place, skipping]

        return iteration

    def _inside(self, body: Graph) -> Counter[Buffer]:
        """How many nodes of a body, those inside included, touch each buffer, as `_users`."""
        return Counter(chain.from_iterable([self._touched[node] for node in walk(body)]))

    def _placed(self, steps: Steps, count: int) -> Steps:
        """So many of the steps, whose crowded buffers have got memory of their own."""
        places = {b: self._own(b.type) for b in steps.rotation.crowded}
        if places:
            rotation = steps.rotation.relocated(places)
            steps = steps_of(rotation, steps.condition, steps.skipping)
        return replace(steps, count=count)

    def _without_loop(self, node: WhileNode, steps: Steps, decision: Decision) -> Graph:
        known = node.construct
        assert known is not None
        why = decision.why or known.why
        inlined = Inlined(replace(known, schedule="unrolled", why=why), 1, True, node.sources)
        return all_steps(steps, Part(inlined, 0))

    # -- both

    def _hindered(self, node: ConditionalNode, obstacle: str | None, asked: Asked) -> Node:
        if asked.binding and asked.schedule != "conditional":
            assert node.construct is not None
            source = node.sources[0] if node.sources else None
            assert asked.schedule is not None
            raise UnschedulableError(node.construct.name, asked.schedule, obstacle or "", source)
        why = asked.why if asked.schedule == "conditional" else obstacle
        free = self._costs.control_is_free and asked.schedule is None
        return _explained(node, Decision("conditional", None if free else why))

    def _flag(self, dtype: np.dtype[Any]) -> Buffer:
        """A new buffer of one element, as `_own`."""
        return self._own(scalar_type(dtype))

    def _own(self, type_: ArrayType) -> Buffer:
        """A new buffer, at a place in the arena that nothing else ever has."""
        buffer = Buffer("scratch", next(self._numbers), type_)
        self._offsets[buffer] = round_up(self._arena_bytes, ALIGNMENT)
        self._arena_bytes = self._offsets[buffer] + round_up(max(type_.nbytes, 1), ALIGNMENT)
        return buffer


def _asked(known: Construct | None, chosen: str | None, unroll: int | None = None) -> Asked:
    """What the user pinned, or else what is set for all."""
    if known is not None and known.pinned is not None:
        return Asked(known.pinned, known.unroll, binding=True)
    return Asked(chosen, unroll)


def _explained(node: ConditionalNode, decision: Decision) -> Node:
    """The node, whose construct tells what was decided."""
    known = node.construct
    if known is None or decision.why is None:
        return node
    schedule = known.schedule if decision.steps == 1 else f"unrolled x{decision.steps}"
    return replace(node, construct=replace(known, schedule=schedule, why=decision.why))
