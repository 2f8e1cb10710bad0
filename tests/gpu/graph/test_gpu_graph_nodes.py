"""Nodes of graphs on a device: names, switches, priorities, options, and the graph behind calls."""

import numpy as np
import pytest

import tracegraph
from tests.helpers.compiled import compiled_for, on_device
from tracegraph import cond, while_loop

N = 10_000


def two_results(x):
    total = np.cumsum(x)
    return np.sort(x)[::-1] * 1.0, total + 1


def chained(x):
    for _ in range(3):
        x = (x - np.sum(x)) / np.max(np.abs(x))
    return x


def looped(x):
    y = while_loop(lambda c: c[1] < 3, lambda c: (c[0] + 1, c[1] + 1), (x, 0))[0]
    return cond(x[0] >= 0, lambda y: np.sort(y), lambda y: -y, y, schedule="conditional")


@pytest.mark.parametrize("function", [two_results, looped, lambda x: x.reshape(100, 100) @ x[:100]])
@pytest.mark.parametrize("programmatic_edges", [True, False])
def test_every_node_has_a_name_and_cuda_cores_node(function, programmatic_edges):
    x = on_device(np.arange(float(N)))
    exported = compiled_for(function, x).export_graph(x, programmatic_edges=programmatic_edges)
    nodes = exported.nodes
    top = [node for node in nodes if node.parent is None]
    assert {int(node.node.handle) for node in top} == {
        int(node.handle) for node in exported.definition.nodes()
    }
    assert all(node.name for node in nodes)
    assert (len(top) < len(nodes)) == (function is looped)
    kernels = [node for node in nodes if node.kind == "kernel"]
    assert all(type(node.node).__name__ == "KernelNode" for node in kernels)
    assert all(node.details["grid"] == node.node.grid for node in kernels)
    if not programmatic_edges:
        given = exported.given
        view = given.device.driver.view(exported.definition, given.bodies)
        at_top = {edge for edge in view.edges if nodes[edge[0]].parent is None}
        assert {
            (int(before.handle), int(behind.handle))
            for before, behind in exported.definition.edges()
        } == {(view.nodes[i].key, view.nodes[j].key) for i, j in at_top}
        assert not view.programmatic
        assert not any(node.programmatic for node in nodes)
    print(nodes)


@pytest.mark.parametrize("function", [two_results, looped])
def test_plain_edges_compute_the_same(function):
    x = on_device(np.linspace(-1, 1, N))
    compiled = compiled_for(function, x)
    plain = compiled.export_graph(x, programmatic_edges=False)
    executable = plain.instantiate()
    executable.launch()
    for found, wanted in zip(
        tracegraph.tree.leaves(plain.results), tracegraph.tree.leaves(compiled(x)), strict=True
    ):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))


def test_a_kernel_that_is_left_out_writes_nothing():
    x = on_device(np.ones(N))
    compiled = tracegraph.jit(lambda x: x + 1, device="cuda", donate_argnums=0).lower(x).compile()
    exported = compiled.export_graph(x, programmatic_edges=False)
    executable, (node,) = exported.instantiate(), exported.nodes
    executable.launch()
    assert executable.is_enabled(node)
    executable.disable(node)
    assert not executable.is_enabled(node)
    for _ in range(3):
        executable.launch()
    np.testing.assert_array_equal(np.asarray(exported.results), np.full(N, 2.0))
    executable.enable(node)
    executable.launch()
    np.testing.assert_array_equal(np.asarray(exported.results), np.full(N, 3.0))


def test_each_node_in_a_chain_can_be_left_out():
    """Nodes behind it compute with what is in memory: with numbers here, not with places."""
    x = on_device(np.random.default_rng(3).standard_normal(N))
    exported = compiled_for(chained, x).export_graph(x, programmatic_edges=False)
    executable = exported.instantiate()
    left_out = [node for node in exported.nodes if not node.obstacle]
    assert len(left_out) > 2
    for node in left_out:
        executable.disable(node)
        executable.launch()
        executable.enable(node)
    executable.launch()
    np.testing.assert_allclose(np.asarray(exported.results), chained(np.asarray(x)), 1e-12)


def test_options_of_instantiation():
    x = on_device(np.ones(N))
    stream = tracegraph.Stream("cuda", priority=-1)
    exported = compiled_for(two_results, x).export_graph(x)
    for node in exported.nodes:
        if node.kind == "kernel":
            node.set_priority(-2)
            assert node.priority == -2
    for options in (
        {"upload_stream": stream},
        {"use_node_priority": True},
        {"upload_stream": stream, "use_node_priority": True},
    ):
        executable = exported.instantiate(**options)
        executable.upload(stream)
        executable.launch(stream)
        np.testing.assert_array_equal(np.asarray(exported.results[0]), np.ones(N))
        executable.close()


def test_streams_have_priorities():
    assert tracegraph.Stream("cuda").priority == 0
    stream = tracegraph.Stream("cuda", priority=-2)
    assert stream.priority == -2
    with tracegraph.stream(stream):
        result = tracegraph.jit(lambda x: x + 1, device="cuda")(np.ones(N))
    np.testing.assert_array_equal(np.asarray(result), np.full(N, 2.0))
    with pytest.raises(ValueError, match="priorities of cuda:0"):
        tracegraph.Stream("cuda", priority=-100)


@pytest.mark.parametrize("function", [two_results, looped])
def test_the_graph_behind_calls(function):
    x = on_device(np.ones(N))
    compiled = compiled_for(function, x)
    before = [np.asarray(leaf) for leaf in tracegraph.tree.leaves(compiled(x))]
    graph = compiled.graph
    kernels = [node for node in graph.nodes if node.kind == "kernel"]
    assert len(kernels) >= 2
    assert all(node.name and node.details["block"] for node in kernels)
    assert graph.dot().count("->") == len(graph.edges)
    print(graph)
    after = [np.asarray(leaf) for leaf in tracegraph.tree.leaves(compiled(x))]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_last_call_on_a_device():
    f = tracegraph.jit(lambda x, dt: x * dt, device="cuda")
    x = on_device(np.ones(N))
    f(x, 0.5)
    assert f.last_call().traced
    stream = tracegraph.Stream("cuda")
    with tracegraph.stream(stream):
        f(np.ones(N), 0.5)
    call = f.last_call()
    assert call.stream == stream.__cuda_stream__()[1]
    assert [(each.handling, each.bytes_copied) for each in call.operands] == [
        ("copied", 8 * N),
        ("by value", 0),
    ]
    f(x, 0.25)
    assert f.last_call().stream is None
    assert f.last_call().bytes_copied == 0
    print(f.last_call())
