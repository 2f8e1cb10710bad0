"""Plans for devices whose graphs lack something: the same program, by other nodes.

no else branches       an IF pair: the second on the negation of the first one's condition
no switch nodes        an IF chain: one condition per branch, set where the switch's was
no body updates        bodies read the addresses of arguments and results from a table
no memory nodes        scratch is kept between launches
no programmatic edges  the same nodes, with plain edges
no conditional nodes   the same nodes, which an executable leaves to the host to carry out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from lowering.legalization.features import Feature, Features
from lowering.legalization.pointer_table import bound_in_bodies, with_table
from lowering.plan.graph_edit import in_order, single, splice
from lowering.plan.kernel import Kernel, MapNest, Nest, ReduceNest, RowNest, SetCondition, Signal
from lowering.plan.plan import (
    ConditionalNode,
    Construct,
    Graph,
    IfElseNode,
    IfNode,
    KernelNode,
    Node,
    Plan,
    SwitchNode,
    bodies,
    walk,
    with_bodies,
)
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Expr, apply, const

_BOOL = np.dtype(np.bool_)


def needed(plan: Plan) -> tuple[Feature, ...]:
    """The features that a Plan uses as it stands, the one that the others build on first."""
    nodes = tuple(walk(plan.graph))
    uses: dict[Feature, bool] = {
        "conditional_nodes": any(map(bodies, nodes)),
        "else_branches": any(isinstance(node, IfElseNode) for node in nodes),
        "switch_nodes": any(isinstance(node, SwitchNode) for node in nodes),
        "body_updates": bool(bound_in_bodies(plan)) and not plan.tabled,
        "memory_nodes": plan.per_launch,
        "programmatic_edges": any(isinstance(node, KernelNode) for node in nodes),
    }
    return tuple(feature for feature, used in uses.items() if used)


def fit(plan: Plan, features: Features) -> Plan:
    """The Plan for a device that has these features."""
    if not features.conditional_nodes:
        plan = _kept(plan, "the host drives the loops")
        return _explained(plan, "host-driven", "no conditional nodes here")
    if not features.memory_nodes:
        plan = _kept(plan, "no memory nodes here")
    if not features.body_updates and bound_in_bodies(plan):
        plan = _explained(with_table(plan), None, "addresses by table: no updates here")
    if not features.else_branches:
        plan = split_else(plan)
    if not features.switch_nodes:
        plan = chain_switches(plan)
    return plan


def split_else(plan: Plan) -> Plan:
    """Every if-else as an if on its condition, then an if on the negation."""
    rewriting = _Rewriting(plan.conditions, "IF pair", "no ELSE here")
    for node in walk(plan.graph):
        if isinstance(node, IfElseNode):
            otherwise = rewriting.test(node.condition, _negation)
            branches = ((node.condition, node.then), (otherwise, node.otherwise))
            rewriting.chains[node] = _occupied(branches)
            rewriting.kept.add(node.condition)
    return rewriting.plan(plan)


def chain_switches(plan: Plan) -> Plan:
    """Every switch as one if for each branch, on whether the condition would hold its number."""
    rewriting = _Rewriting(plan.conditions, "IF chain", "no SWITCH here")
    for node in walk(plan.graph):
        if isinstance(node, SwitchNode):
            tests = [
                rewriting.test(node.condition, partial(_equals, number=i))
                for i in range(len(node.branches))
            ]
            rewriting.chains[node] = _occupied(tuple(zip(tests, node.branches, strict=True)))
    return rewriting.plan(plan)


def _kept(plan: Plan, why: str) -> Plan:
    """The Plan, whose scratch is kept between launches; why, if it was not to be."""
    return replace(plan, per_launch=False, kept_because=why) if plan.per_launch else plan


def _explained(plan: Plan, schedule: str | None, why: str) -> Plan:
    """The Plan, whose conditional nodes tell why they run as they do, or by another schedule."""

    def graph(old: Graph) -> Graph:
        return Graph(tuple(map(node, old.nodes)), old.edges)

    def node(old: Node) -> Node:
        if not isinstance(old, ConditionalNode):
            return old
        new = with_bodies(old, [graph(body) for body in bodies(old)])
        return replace(new, construct=_scheduled(old, schedule, why))

    return replace(plan, graph=graph(plan.graph))


def _scheduled(node: ConditionalNode, schedule: str | None, why: str) -> Construct | None:
    """What a node runs, carried out in another way."""
    known = node.construct
    if known is None:
        return None
    if schedule is not None and known.schedule.startswith("unrolled"):
        schedule = f"{schedule}, {known.schedule}"
    return replace(known, schedule=schedule or known.schedule, why=why)


Chain = tuple[tuple[int, Graph], ...]
"""If nodes that run one after the other, as conditions and bodies; at most one is taken."""


def _occupied(chain: Chain) -> Chain:
    """A chain without the branches that do nothing: some drivers hang on an empty body."""
    return tuple((test, body) for test, body in chain if body.nodes) or chain[:1]


def _negation(value: Expr) -> Expr:
    if value.dtype == _BOOL:
        return apply(get("logical_not"), (value,), _BOOL, {})
    return _equals(value, 0)


def _equals(value: Expr, number: int) -> Expr:
    return apply(get("equal"), (value, const(number, value.dtype)), _BOOL, {})


@dataclass(slots=True)
class _Rewriting:
    """Which nodes become which chains, and which conditions are set along with which.

    `schedule` and `why` are what is said of the new nodes.
    `tests` lists, for a condition, the new ones and their values by its value. A condition with
    tests that is not `kept` is no longer set itself.
    """

    conditions: int
    schedule: str
    why: str
    chains: dict[Node, Chain] = field(default_factory=dict)
    tests: dict[int, list[tuple[int, Callable[[Expr], Expr]]]] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)

    def test(self, condition: int, value: Callable[[Expr], Expr]) -> int:
        """A new condition, set to `value` of what `condition` is set to."""
        self.tests.setdefault(condition, []).append((self.conditions, value))
        self.conditions += 1
        return self.conditions - 1

    @property
    def held(self) -> frozenset[int]:
        """The conditions that some node of a chain has: branches that do nothing have no node."""
        return frozenset(test for chain in self.chains.values() for test, _ in chain)

    def plan(self, plan: Plan) -> Plan:
        if not self.chains:
            return plan
        return replace(plan, graph=self.graph(plan.graph), conditions=self.conditions)

    def graph(self, graph: Graph) -> Graph:
        return splice(graph, lambda node: in_order([single(new) for new in self.nodes(node)]))

    def nodes(self, node: Node) -> Sequence[Node]:
        if isinstance(node, KernelNode):
            nests = tuple(map(self.nest, node.kernel.nests))
            return [replace(node, kernel=Kernel(node.kernel.name, nests))]
        if not isinstance(node, ConditionalNode):
            return [node]
        if node not in self.chains:
            return [with_bodies(node, [self.graph(body) for body in bodies(node)])]
        construct = _scheduled(node, self.schedule, self.why)
        return [
            IfNode(condition, self.graph(body), node.sources, construct)
            for condition, body in self.chains[node]
        ]

    def nest(self, nest: Nest) -> Nest:
        if not isinstance(nest, MapNest | ReduceNest | RowNest):
            return nest
        signals = tuple(new for signal in nest.signals for new in self.signals(signal))
        return replace(nest, signals=signals)

    def signals(self, signal: Signal) -> Sequence[Signal]:
        if not isinstance(signal, SetCondition) or signal.condition not in self.tests:
            return [signal]
        set_ = [(signal.condition, signal.value)] if signal.condition in self.kept else []
        set_ += [(new, value(signal.value)) for new, value in self.tests[signal.condition]]
        return [
            SetCondition(condition, value) for condition, value in set_ if condition in self.held
        ]
