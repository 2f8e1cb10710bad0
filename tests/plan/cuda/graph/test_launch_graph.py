"""A Plan has the nodes of the CUDA graph: what emission adds is what people are shown."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.plan.launch_nodes import AllocationNode, FreeNode, LoadNode, TableNode
from lowering.plan.nodes import Graph, body_graphs, launched
from lowering.plan.plan import Plan
from lowering.plan.reports.explain import explain
from lowering.plan.reports.graphviz import dot
from lowering.plan.serialization import serialized
from lowering.plan.target import overrides as choices
from lowering.plan.target.features import Feature
from lowering.testing.recorded_objects import RecordedGraph, RecordedNode
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.corpus import CASES
from tests.programs.launched import LONG, MATRIX, PROGRAMS, power, product_in_a_loop

KINDS = {"library": "kernel", "copy": "memcpy"}
KINDS |= dict.fromkeys(("if_else", "switch", "while"), "conditional")

ALL = {**PROGRAMS, **{name: (case.function, case.arguments) for name, case in CASES.items()}}


def lowered(function: Callable[..., Any], *arguments: Any, **options: Any) -> Plan:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about constants
        plan: Plan = tracegraph.jit(function, device="cuda", **options).lower(*arguments).plan
    return plan


def conditional(function: Callable[..., Any], *arguments: Any, **options: Any) -> Plan:
    with choices.override(loops="conditional", branches="conditional"):
        return lowered(function, *arguments, **options)


def compiled(plan: Plan, lacks: Collection[Feature] = ()) -> tuple[Plan, RecordingDriver]:
    """The Plan that runs, and the driver that has its graphs."""
    backend = RecordingBackend(lacks=lacks)
    return backend.compile(plan).plan, backend.device.driver


def driver_kind(node: RecordedNode) -> str:
    """What the driver calls a node that was recorded."""
    match node.kind:
        case "memory":
            return "mem_alloc" if node.name.startswith("allocate") else "mem_free"
        case "event":
            return "event_record" if node.name == "record" else "wait_event"
    return KINDS.get(node.kind, node.kind)


def said(plan: Plan, graph: Graph) -> Counter[str]:
    """The kinds of nodes of a graph or body, as the Plan has them."""
    kinds = [plan.graph_nodes(node) for node in graph.nodes]
    assert None not in kinds, "all are known once it is compiled"
    return Counter([kind for each in kinds for kind in each or ()])


def assert_same_nodes(plan: Plan, graph: Graph, recorded: RecordedGraph) -> None:
    """The graph has as many nodes of each kind as the Plan says, and so have its bodies.

    Where each node of the Plan is one, the edges are the same, too. Else all that becomes of a node
    is over before anything begins that becomes of a later one.
    """
    assert Counter(map(driver_kind, recorded.nodes)) == said(plan, graph)
    sizes = [len(plan.graph_nodes(node) or ()) for node in graph.nodes]
    if set(sizes) == {1}:
        assert recorded.edges == graph.edges
    over: dict[RecordedNode, set[RecordedNode]] = {}
    for node in recorded.nodes:
        over[node] = {*node.dependencies}.union(*[over[each] for each in node.dependencies])
    starts = [0, *accumulate(sizes)]
    parts = [recorded.nodes[start:end] for start, end in pairwise(starts)]
    for before, behind in graph.edges:
        assert parts[before]
        assert all(over[node].issuperset(parts[before]) for node in parts[behind])
    bodies = [body for node in graph.nodes for body in body_graphs(node)]
    inner = [body for node in recorded.nodes for body in node.bodies]
    for body, found in zip(bodies, inner, strict=True):
        assert_same_nodes(plan, body, found)


WAYS: dict[str, Callable[..., tuple[Plan, tuple[Feature, ...]]]] = {
    "as planned": lambda f, *x: (lowered(f, *x), ()),
    "conditional": lambda f, *x: (conditional(f, *x), ()),
    "scratch of each launch": lambda f, *x: (conditional(f, *x, scratch="per_launch"), ()),
    "without body updates": lambda f, *x: (conditional(f, *x), ("body_updates",)),
    "without memory nodes": lambda f, *x: (lowered(f, *x, scratch="per_launch"), ("memory_nodes",)),
}


EACH_WAY = [(name, way) for n, name in enumerate(ALL) for i, way in enumerate(WAYS) if (n + i) % 2]
"""Each program in one way or in two of them."""


@pytest.mark.parametrize(("name", "way"), EACH_WAY)
def test_a_graph_has_the_nodes_of_its_plan(name: str, way: str) -> None:
    function, arguments = ALL[name]
    plan, driver = compiled(*WAYS[way](function, *arguments))
    (graph,) = driver.graphs
    assert_same_nodes(plan, plan.launch_graph, graph)
    size = sum(1 for _ in graph.walk())
    assert explain(plan).startswith(f"{plan.name}: {size} nodes, ")


@pytest.mark.parametrize("name", sorted(ALL)[::2])
def test_what_the_host_drives_has_the_nodes_of_its_plan_in_parts(name: str) -> None:
    function, arguments = ALL[name]
    plan, driver = compiled(conditional(function, *arguments), ["conditional_nodes"])
    parts = Counter([driver_kind(node) for graph in driver.graphs for node in graph.nodes])
    nodes = Graph(tuple(launched(plan.launch_graph)), frozenset())
    assert parts == said(plan, nodes)
    assert explain(plan).startswith(f"{plan.name}: {parts.total()} nodes, 0 of them conditional")


def kinds_of(plan: Plan) -> Iterator[type]:
    return (type(node) for node in plan.launch_graph.nodes)


def test_scratch_is_allocated_first_and_freed_last() -> None:
    plan, driver = compiled(conditional(power, LONG, LONG, 3, scratch="per_launch"))
    (graph,) = driver.graphs
    first, load, *_, free = plan.launch_graph.nodes
    assert (type(first), type(load), type(free)) == (AllocationNode, LoadNode, FreeNode)
    allocated, loaded, *work, freed = graph.nodes
    assert freed.behind() == set(graph.nodes)
    assert all(allocated in node.behind() for node in work)
    assert not loaded.dependencies


def test_loops_and_calls_with_one_workspace_run_one_at_a_time() -> None:
    def two(x: Any, n: Any) -> Any:
        return product_in_a_loop(x, x, n), product_in_a_loop(-x, x, n) @ x

    plan = conditional(two, MATRIX, 3)
    assert plan.graph.edges < serialized(plan.graph).edges
    ordered = [i for i, n in enumerate(plan.launch_graph.nodes) if n.exclusive or n.bodies]
    assert set(pairwise(ordered)) <= plan.launch_graph.edges
    simple = lowered(power, LONG, LONG, 3).graph
    assert serialized(simple) is simple


def test_before_it_is_compiled_the_plan_of_a_device_has_them_too() -> None:
    plan = conditional(power, LONG, LONG, 3, scratch="per_launch")
    later, _ = compiled(plan)
    assert list(kinds_of(plan)) == list(kinds_of(later))
    on_host: Plan = tracegraph.jit(power, device="host").lower(LONG, LONG, 3).plan
    assert on_host.launch_graph is on_host.graph
    assert explain(on_host).startswith(f"{on_host.name}: {sum(on_host.node_counts.values())} nodes")


def test_each_is_explained() -> None:
    plan, _ = compiled(conditional(power, LONG, LONG, 3), ["body_updates"])
    title, _, load, table, loop = explain(plan).splitlines()
    assert title == "power: 8 nodes, 1 of them conditional"
    assert "load 1 small argument " in load
    assert load.endswith("passes 1 small argument by value: input[2]")
    assert "load 3 addresses " in table
    assert table.endswith("that bodies read from a table: input[0], input[1], input[2]")
    assert "fori_loop" in loop


def test_tables_and_parameters_that_are_full() -> None:
    function, arguments = PROGRAMS["many_arguments"]
    plan, _ = compiled(conditional(function, *arguments), ["body_updates"])
    tables = [node for node in plan.launch_graph.nodes if isinstance(node, TableNode)]
    assert [len(node.entries) for node in tables] == [384, len(plan.indirect) - 384]
    function, arguments = PROGRAMS["many_numbers"]
    plan = lowered(function, *arguments)
    (load,) = [node for node in plan.launch_graph.nodes if isinstance(node, LoadNode)]
    assert len(load.inputs) == 383


def test_library_calls_are_counted_once_they_are_captured() -> None:
    plan = conditional(product_in_a_loop, MATRIX, MATRIX, 3)
    (row,) = [line for line in explain(plan).splitlines() if "matmul" in line]
    assert row.split("library node")[1].split(maxsplit=1) == [
        "?",
        "a product; its nodes are known once it is compiled",
    ]
    assert "at least" in explain(plan).splitlines()[0]
    driver = RecordingDriver(library_kinds=("memset", "kernel", "kernel"))
    later = RecordingBackend(driver).compile(plan).plan
    (row,) = [line for line in explain(later).splitlines() if "matmul" in line]
    assert "memset, 2 kernel nodes  3" in row
    assert "at least" not in explain(later)
    assert "memset, 2 kernel nodes" in dot(later)
    assert "memset, 2 kernel nodes" in str(later.diagram())


def test_copies_of_a_loops_body_share_a_row() -> None:
    plan = lowered(lambda x, y: product_in_a_loop(x, y, 3), MATRIX, MATRIX)
    later, _ = compiled(plan)
    (row,) = [line for line in explain(plan).splitlines() if "matmul" in line]
    assert "3 times" in row
    assert said(later, later.launch_graph)["kernel"] == sum(
        len(later.graph_nodes(node) or ()) for node in later.launch_graph.nodes
    )


def test_a_sort_is_as_many_nodes_as_kernels() -> None:
    plan = lowered(np.sort, LONG)
    (row,) = [line for line in explain(plan).splitlines() if "sort 100000" in line]
    assert "10 kernel nodes  10" in row
    assert dot(plan).count("10 kernel nodes") == 1


def test_an_exported_graph_has_fixed_arguments_and_loads_none() -> None:
    backend = RecordingBackend()
    executable = backend.compile(conditional(power, LONG, LONG, 3))
    given = [backend.device.pool.buffer(each) for each in executable.plan.in_types]
    exported = executable.export_graph(given).definition
    names = [node.name for node in exported.nodes]
    assert "tracegraph_load" not in names
    assert len(names) == len(executable.plan.graph.nodes)
