"""The nodes of exported graphs and of those behind calls: names, lines, switches, priorities."""

import gc

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.features import override
from lowering.testing.recording_backend import RecordingBackend
from tests.fakes.foreign_arrays import Foreign
from tests.programs.hand_made_plans import ALL, diamond, memory_for, nested_loops, products
from tracegraph import ArrayType
from tracegraph.errors import (
    CapturingStreamError,
    ClosedError,
    ExportError,
    NodeError,
    NoGraphError,
)

VECTOR = ArrayType("float64", (1000,))


def embedded():
    def f(x):
        return tracegraph.embed(7, reads=x + 1, at=Foreign(1 << 40), out=Foreign(1 << 41)) * 2

    return tracegraph.jit(f, device="cuda").lower(VECTOR).plan


def exported(make, backend=None, **options):
    backend = backend or RecordingBackend()
    made = make()
    executable = backend.compile(made)
    return executable.export_graph(memory_for(made, backend), **options), executable, backend


# Nodes of exported graphs


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_every_node_is_listed_once_with_its_name(make):
    try:
        given, _, _ = exported(make)
    except ExportError:
        pytest.skip("its launches report something")
    nodes = given.nodes
    assert [node.node for node in nodes] == list(given.definition.walk())
    assert [node.number for node in nodes] == list(range(len(nodes)))
    for node in nodes:
        assert node.name
        assert node.line == "model.py:7" or node.kind in ("memory", "kernel")
        if node.parent is not None:
            assert nodes[node.parent].kind == "conditional"
            bodies = nodes[node.parent].node.bodies
            assert node.node in bodies[node.branch].nodes


def test_kernels_have_the_names_of_their_functions():
    given, _, _ = exported(diamond)
    for node in given.nodes:
        assert node.name == node.node.launch.kernel
        assert node.details["block"] == node.node.launch.block
        assert repr(node) == f"<kernel node {node.number} {node.name} model.py:7>"


def test_nodes_print_as_a_table():
    given, _, _ = exported(nested_loops)
    lines = str(given.nodes).splitlines()
    assert lines[0].split() == ["node", "kind", "name", "line"]
    assert len(lines) == 1 + len(given.nodes)
    inner = next(node for node in given.nodes if node.parent is not None)
    assert lines[1 + inner.number].startswith(f"{inner.number} in {inner.parent} ")


# Leaving nodes out


def test_a_kernel_is_left_out_and_put_back():
    given, _, backend = exported(diamond, programmatic_edges=False)
    executable = given.instantiate()
    other = given.instantiate()
    node = given.nodes[1]
    assert executable.is_enabled(node)
    executable.disable(node)
    assert not executable.is_enabled(given.nodes[1])
    assert other.is_enabled(node)
    executable.launch()
    executable.enable(node)
    assert executable.is_enabled(node)
    switched = [c.detail for c in backend.device.driver.calls if c.operation == "set_enabled"]
    assert switched == [(node.name, False), (node.name, True)]


def test_what_cuda_cannot_leave_out_is_refused():
    given, _, backend = exported(nested_loops, programmatic_edges=False)
    executable, nodes = given.instantiate(), given.nodes
    loop = next(node for node in nodes if node.kind == "conditional" and node.parent is None)
    assert loop.name == "while"
    inside = next(node for node in nodes if node.kind == "kernel" and node.parent is not None)
    with pytest.raises(NodeError, match=r"conditional node .* cannot be disabled: CUDA leaves out"):
        executable.disable(loop)
    with pytest.raises(NodeError, match="in the body of a loop or branch"):
        executable.disable(inside)
    with pytest.raises(NodeError, match="cannot be enabled"):
        executable.enable(inside)
    assert executable.is_enabled(loop)
    assert backend.device.driver.count("set_enabled") == 0


def test_a_node_at_a_programmatic_edge_is_not_left_out():
    given, _, _ = exported(diamond)
    executable = given.instantiate()
    with pytest.raises(NodeError, match="programmatic_edges=False"):
        executable.disable(given.nodes[0])


def test_nodes_of_other_graphs_are_refused():
    given, made, backend = exported(diamond, programmatic_edges=False)
    other = made.export_graph(memory_for(made.plan, backend), programmatic_edges=False)
    executable = given.instantiate()
    with pytest.raises(NodeError, match="is none of the executable of 'diamond'"):
        executable.disable(other.nodes[0])
    with pytest.raises(TypeError, match=r"got RecordedNode; choose one of exported\.nodes"):
        executable.disable(given.nodes[0].node)
    assert executable.update(other)
    executable.disable(given.nodes[0])  # those that it was made of, whatever it was updated to


def test_a_node_keeps_its_graph():
    given, _, backend = exported(diamond, programmatic_edges=False)
    executable, node = given.instantiate(), given.nodes[0]
    del given
    backend.device.driver.graphs.clear()
    gc.collect()
    executable.disable(node)
    assert not executable.is_enabled(node)


def test_a_closed_executable_has_no_switches():
    given, _, _ = exported(diamond, programmatic_edges=False)
    executable, node = given.instantiate(), given.nodes[0]
    executable.close()
    for act in (executable.enable, executable.disable, executable.is_enabled):
        with pytest.raises(ClosedError):
            act(node)


def test_a_graph_without_some_nodes_joins_no_capture():
    given, _, backend = exported(diamond, programmatic_edges=False)
    executable, node = given.instantiate(), given.nodes[0]
    executable.disable(node)
    backend.device.driver.captured_streams.add(8)
    with pytest.raises(CapturingStreamError, match="nodes of it are disabled"):
        executable.launch(8)
    executable.enable(node)
    executable.launch(8)


def test_copies_around_embedded_graphs_are_left_out():
    given, _, _ = exported(embedded, programmatic_edges=False)
    executable = given.instantiate()
    copies = [node for node in given.nodes if node.kind == "memcpy"]
    assert copies
    executable.disable(copies[0])
    (child,) = [node for node in given.nodes if node.kind == "graph"]
    with pytest.raises(NodeError, match="kernel, memcpy, memset nodes alone"):
        executable.disable(child)


# Priorities and options of instantiation


def test_priorities_of_kernels():
    given, _, backend = exported(nested_loops)
    kernel = next(node for node in given.nodes if node.kind == "kernel")
    assert kernel.priority == 0
    kernel.set_priority(-5)
    assert kernel.priority == -5
    for priority in (1, -6):
        with pytest.raises(ValueError, match=r"are -5 \(first\) to 0, got"):
            kernel.set_priority(priority)
    with pytest.raises(TypeError, match="is an int"):
        kernel.set_priority(-1.0)
    loop = next(node for node in given.nodes if node.kind == "conditional")
    with pytest.raises(NodeError, match="has no priority"):
        loop.set_priority(-1)
    with pytest.raises(NodeError, match="has no priority"):
        loop.priority  # noqa: B018
    assert backend.device.driver.count("set_priority") == 1


@pytest.mark.parametrize(
    ("options", "logged"),
    [
        ({}, []),
        ({"use_node_priority": True}, [(None, True)]),
        ({"upload_stream": 8}, [(8, False)]),
        ({"upload_stream": 8, "use_node_priority": True}, [(8, True)]),
    ],
)
def test_options_of_instantiation(options, logged):
    given, _, backend = exported(diamond)
    given.instantiate(**options).launch()
    calls = backend.device.driver.calls
    assert [c.detail for c in calls if c.operation == "instantiate_options"] == logged


def test_a_stream_for_the_upload_is_checked():
    given, _, backend = exported(diamond)
    with pytest.raises(TypeError, match="got str"):
        given.instantiate(upload_stream="8")
    with pytest.raises(TypeError):
        given.instantiate(8)
    assert backend.device.driver.count("instantiate") == 1


# Programmatic edges


@pytest.mark.parametrize("make", [diamond, nested_loops, products])
def test_all_edges_are_plain_on_request(make):
    given, executable, backend = exported(make, programmatic_edges=False)
    plain = backend.device.driver.view(given.definition, given.given.bodies)
    assert not plain.programmatic
    usual = executable.export_graph(memory_for(executable.plan, backend))
    found = backend.device.driver.view(usual.definition, usual.given.bodies)
    assert found.edges == plain.edges
    assert bool(found.programmatic) == (make is diamond)
    executable(memory_for(executable.plan, backend))
    assert executable.view().programmatic == found.programmatic


def test_the_option_does_not_hide_an_argument(backend):
    f = tracegraph.jit(lambda x, programmatic_edges: x + programmatic_edges, device="cuda:0")
    x = tracegraph.Array(backend.device.pool.buffer(VECTOR))
    compiled = f.lower(x, 1.0).compile()
    given = compiled.export_graph(x, 1.0, programmatic_edges=False)
    assert len(given.nodes) == 1


# The graph behind calls


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_the_graph_behind_calls_has_all_nodes_and_edges(make):
    backend = RecordingBackend()
    executable = backend.compile(make())
    (graph,) = backend.device.driver.graphs[:1]
    view = executable.view()
    assert len(view.nodes) == len(list(graph.walk()))
    top = [node.number for node in view.nodes if node.parent is None]
    edges = {(top[first], top[second]) for first, second in graph.edges}
    assert {e for e in view.edges if e[0] in top} == edges
    assert view.dot().count("->") == len(view.edges)
    assert view.dot().count("[label=") == len(view.nodes)
    assert str(view).count("\n") == 1 + len(view.nodes)


def test_it_is_that_of_the_current_stream(backend):
    f = tracegraph.jit(lambda x: x + 1, device="cuda:0")
    compiled = f.lower(VECTOR).compile()
    x = tracegraph.Array(backend.device.pool.buffer(VECTOR))
    with tracegraph.stream(8):
        compiled(x)
    asked = []
    view = backend.device.driver.view
    for driver in backend.device.driver.streams:
        driver.view = lambda graph, bodies: asked.append(graph) or view(graph, bodies)
    assert len(compiled.graph.nodes) == 1
    with tracegraph.stream(8):
        assert len(compiled.graph.nodes) == 1
    assert asked == backend.device.driver.graphs[:2]


def test_what_is_done_to_it_does_not_concern_the_graph(backend):
    compiled = tracegraph.jit(lambda x: np.cumsum(x) + 1, device="cuda:0").lower(VECTOR).compile()
    view = compiled.graph
    with pytest.raises(AttributeError):
        view.nodes = ()
    with pytest.raises(TypeError):
        view.nodes[0].details["grid"] = (1, 1, 1)
    assert not hasattr(view.nodes[0], "node")
    compiled.close()
    gc.collect()
    assert view.nodes[0].kind == "kernel"
    with pytest.raises(ClosedError):
        compiled.graph  # noqa: B018


def test_there_is_none_on_the_host():
    on_host = tracegraph.jit(lambda x: x + 1, device="host").lower(VECTOR).compile()
    with pytest.raises(NoGraphError, match="has no CUDA graph: it runs on the host"):
        on_host.graph  # noqa: B018


def test_there_is_none_where_the_host_drives_loops(backend):
    def halve(x):
        return tracegraph.while_loop(lambda x: x[0] > 1, lambda x: x / 2, x, schedule="conditional")

    with override(conditional_nodes=False):
        driven = tracegraph.jit(halve, device="cuda:0").lower(VECTOR).compile()
    with pytest.raises(NoGraphError, match="the host drives its loops"):
        driven.graph  # noqa: B018


def test_it_prints_bodies_behind_their_loop():
    backend = RecordingBackend()
    view = backend.compile(nested_loops()).view()
    text = str(view)
    assert text.startswith(f"graph of {view.name} on cuda:0: {len(view.nodes)} nodes")
    inner = next(node for node in view.nodes if node.parent is not None)
    assert f"\n  {inner.number} " in text
    assert f"subgraph cluster_{inner.parent}" in view.dot()


# Streams


def test_a_stream_has_the_priority_asked_for():
    backend = RecordingBackend()
    assert backend.create_stream().priority == 0
    assert backend.create_stream(-3).priority == -3
    made = [c.detail for c in backend.device.driver.calls if c.operation == "create_stream"]
    assert made == [(), (-3,)]
    with pytest.raises(ValueError, match=r"priorities of cuda:0 are -5 \(first\) to 0, got -6"):
        backend.create_stream(-6)
