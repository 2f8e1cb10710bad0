"""The driver has the nodes that a Plan says, in the graph and in each body."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.graph import emit
from lowering.driver.graphs import node_kinds
from lowering.plan.nodes import Graph
from lowering.plan.plan import Plan
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import override
from tests.corpus import CASES
from tests.helpers.parameters import in_turn
from tests.programs.launched import PROGRAMS

Emitted = list[tuple[Graph, Counter[str]]]

SOME = list(CASES)[::6]
ALL = {**PROGRAMS, **{name: (CASES[name].function, CASES[name].arguments) for name in SOME}}


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Emitted:
    """The graphs and bodies of Plans, each with the kinds of nodes that the driver has for it."""
    found: Emitted = []
    real = emit.emit_graph

    def spy(emission: Any, graph: Any, source: Graph) -> None:
        real(emission, graph, source)
        found.append((source, Counter(node_kinds(graph.handle))))

    monkeypatch.setattr(emit, "emit_graph", spy)
    return found


def said(plan: Plan, graph: Graph) -> Counter[str]:
    """The kinds of nodes of a graph or body, as the Plan has them."""
    known = [plan.graph_nodes(node) for node in graph.nodes]
    assert None not in known
    return Counter([kind for each in known for kind in each or ()])


def assert_said(plan: Plan, emitted: Emitted) -> None:
    assert emitted
    for source, found in emitted:
        assert found == said(plan, source)
    _, top = emitted[-1]
    assert top == said(plan, plan.launch_graph)


def as_planned(function: Callable[..., Any], arguments: Any) -> Any:
    return tracegraph.jit(function, device="cuda").lower(*arguments).compile()


def conditional(function: Callable[..., Any], arguments: Any, **options: Any) -> Any:
    with choices.override(loops="conditional", branches="conditional"):
        lowered = tracegraph.jit(function, device="cuda", **options).lower(*arguments)
    return lowered.compile()


def per_launch(function: Callable[..., Any], arguments: Any) -> Any:
    return conditional(function, arguments, scratch="per_launch")


def by_table(function: Callable[..., Any], arguments: Any) -> Any:
    with override(body_updates=False):
        return conditional(function, arguments)


WAYS = [as_planned, conditional, per_launch, by_table]


@pytest.mark.parametrize(("name", "way"), in_turn(ALL, WAYS, rounds=2))
def test_the_driver_has_the_nodes_of_the_plan(
    name: str, way: Callable[..., Any], emitted: Emitted
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fallbacks, and NumPy's about constants
        compiled = way(*ALL[name])
    assert_said(compiled.plan, emitted)
    total = sum(found.total() for _, found in emitted)
    assert compiled.explain().startswith(f"{compiled.plan.name}: {total} nodes, ")
    compiled.close()


def test_an_embedded_graph_and_its_copies_are_counted(emitted: Emitted) -> None:
    x = np.arange(1000.0)
    at = tracegraph.asarray(x, device="cuda")
    exported = tracegraph.jit(lambda x: x * 2, device="cuda").lower(at).compile().export_graph(at)

    def doubled(x: Any) -> Any:
        definition, out = exported.definition, exported.results
        return tracegraph.embed(definition, reads=x, at=at, out=out, host=lambda x: 2 * x) + 1

    emitted.clear()
    compiled = as_planned(doubled, (x,))
    ((_, found),) = emitted
    inside = Counter(node_kinds(exported.definition.handle))  # the driver lists them, too
    assert found - inside == said(compiled.plan, compiled.plan.launch_graph)
    assert (found["graph"], found["memcpy"]) == (1, 2)
    np.testing.assert_array_equal(np.asarray(compiled(x)), 2 * x + 1)
