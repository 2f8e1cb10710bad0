"""The graph of a traced program has the nodes, edges and nesting of its Plan."""

from itertools import pairwise

import numpy as np
import pytest

import tracegraph
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.launch_graph import moving_calls, pointer_parts
from lowering.plan.nodes import KernelNode, LibraryNode, MemcpyNode
from lowering.plan.serialization import serialized
from lowering.plan.target import overrides as choices
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign

KINDS = {
    KernelNode: "kernel",
    MemcpyNode: "kernel",
    LibraryNode: "library",
    IfElseNode: "if_else",
    SwitchNode: "switch",
    WhileNode: "while",
}


def assert_mirrors(recorded, graph, offset=0):
    """`offset` nodes of the recorded graph, at its start, are not in the Plan's."""
    nodes = recorded.nodes[offset:]
    assert [node.kind for node in nodes] == [KINDS[type(node)] for node in graph.nodes]
    edges = {(i - offset, j - offset) for i, j in recorded.edges if i >= offset}
    assert edges == serialized(graph).edges
    for node, planned in zip(nodes, graph.nodes, strict=True):
        assert len(node.bodies) == len(planned.bodies)
        for body, planned_body in zip(node.bodies, planned.bodies, strict=True):
            assert_mirrors(body, planned_body)


def power(x, n):
    return tracegraph.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 2, c[1] + 1), (x, 0))[0]


def collatz(x, n):
    def step(c):
        k, i = c
        return tracegraph.cond(k % 2 == 0, lambda k: k // 2, lambda k: 3 * k + 1, k), i + 1

    def row(i, total):
        return total + tracegraph.while_loop(lambda c: c[0] > 1, step, (i + 1, 0))[1]

    return x * tracegraph.fori_loop(0, n, row, 0)


def iterate(x, n):
    return tracegraph.fori_loop(0, n, lambda i, c: (x @ c) / np.sqrt(np.sum(c * c)), x)


def choose(x, n):
    branches = [lambda x: x @ x, lambda x: -x, lambda x: x.T @ x]
    return tracegraph.switch(n, branches, x) + x @ x


@pytest.mark.parametrize(
    ("fun", "device"),
    [(power, "host"), (collatz, "host"), (iterate, "cuda"), (choose, "cuda")],
)
def test_a_program(fun, device):
    x = np.ones((64, 64))
    plan = tracegraph.jit(fun, device=device).lower(x, 3).plan
    driver = RecordingDriver()
    executable = RecordingBackend(driver).compile(plan)
    (graph,) = driver.graphs
    assert graph.nodes[0].name == "tracegraph_load"
    assert_mirrors(graph, plan.graph, offset=1 + len(pointer_parts(moving_calls(plan.graph))))
    assert driver.count("create_condition") == plan.conditions
    results = executable([x, 3])
    assert [result.type for result in results] == [t.strong() for t in plan.out_types]
    updated = {call.detail[0] for call in driver.calls if call.operation == "update_kernel"}
    assert "tracegraph_load" in updated
    assert driver.open_captures == 0


def test_a_program_without_small_inputs_has_no_load_node():
    plan = tracegraph.jit(lambda x: np.sin(x).sum(), device="host").lower(np.ones(1000)).plan
    driver = RecordingDriver()
    RecordingBackend(driver).compile(plan)
    assert_mirrors(driver.graphs[0], plan.graph)


def array(backend, *shape):
    type_ = tracegraph.ArrayType("float64", shape)
    return tracegraph.Array(backend.device.pool.buffer(type_))


def test_an_array_that_is_passed_twice_goes_to_the_graph_for_two(backend):
    f = tracegraph.jit(lambda x, y: x * 2 + y, device="cuda:0")
    x, y = array(backend, 1000), array(backend, 1000)
    for given in [(x, x), (x, y)] * 3:
        f(*given)
        (graph,) = backend.device.driver.graphs
        (node,) = graph.nodes
        addresses = [argument.data.pointer for argument in given]
        assert [value for value in node.values if value in addresses] == addresses
    assert f.stats()["builds"] == 1


def test_views_that_overlap_go_to_the_graph_for_views_that_do_not(backend):
    f = tracegraph.jit(lambda x, y: x * 2 + y, device="cuda:0")
    start = 0x7000000
    for pointers in [(start, start + 8000), (start, start + 8), (start + 8, start)] * 2:
        f(*map(Foreign, pointers))
        (graph,) = backend.device.driver.graphs
        (node,) = graph.nodes
        assert [value for value in node.values if value in pointers] == list(pointers)
    assert f.stats()["builds"] == 1
    assert f.stats()["bytes_copied"] == 0


def test_arrays_that_products_in_a_loop_read_can_move(backend):
    def power(a, b, x, n):
        return tracegraph.fori_loop(0, n, lambda i, x: a @ (b @ x), x)

    f = tracegraph.jit(power, device="cuda:0")
    kept = []
    for n in range(3):
        given = [array(backend, 50, 50) for _ in range(3)]
        kept += given
        f(*given, n)
        (graph,) = backend.device.driver.graphs
        passed = {value for node in graph.walk() for value in node.values}
        found = [argument for argument in kept if argument.data.pointer in passed]
        assert found == given
    assert f.stats()["builds"] == 1
    assert backend.device.driver.count("begin_capture") == 2


def loops_side_by_side(x, n):
    """A loop, one in a branch, and one with a loop inside: none needs what another one makes."""

    def double(x):
        return tracegraph.while_loop(lambda y: y[0] < n, lambda y: y * 2, x)

    def rows(i, y):
        return double(y) + i

    return (
        double(x),
        tracegraph.cond(n > 3, double, lambda x: x, x + 1, schedule="conditional"),
        tracegraph.fori_loop(0, n, rows, x + 2),
        np.cumsum(x),
    )


def test_while_nodes_follow_one_another():
    with choices.override(loops="conditional"):
        plan = tracegraph.jit(loops_side_by_side, device="cuda").lower(np.ones(8), 5).plan
    driver = RecordingDriver()
    RecordingBackend(driver).compile(plan)
    nodes = driver.graphs[0].nodes
    looping = [n for n in nodes if n.kind == "while" or any("while" in kinds(b) for b in n.bodies)]
    assert [node.kind for node in looping] == ["while", "if_else", "while"]
    for before, after in pairwise(looping):
        assert before in after.behind()
    alone = [node for node in nodes if node.kind == "kernel" and "cumsum" not in node.name]
    assert any(not node.behind() & {*looping} for node in alone)


def kinds(graph):
    return {node.kind for node in graph.walk()}
