"""Where bodies take no new addresses, root nodes write them to a table, which calls update."""

import numpy as np
import pytest

import tracegraph
from lowering.cuda.graph import pointer_table as table
from lowering.plan import launch_graph
from lowering.plan.target import overrides as choices
from lowering.testing.recording_backend import RecordingBackend

N = 1000


def power(x, y, n):
    return tracegraph.fori_loop(0, n, lambda i, c: c * x + y, x) + y


@pytest.fixture
def backend():
    return RecordingBackend(lacks=["body_updates"])


def compiled(backend, function=power, count=2):
    arguments = [np.ones(N)] * count
    with choices.override(loops="conditional"):
        plan = tracegraph.jit(function, device="host").lower(*arguments, 3).plan
    return backend.compile(plan)


def arrays(backend, executable):
    return [backend.device.pool.buffer(t) for t in executable.plan.in_types[:-1]]


def roots(backend):
    (graph,) = backend.device.driver.graphs
    return [node for node in graph.nodes if node.name == table.TABLE_KERNEL]


def test_a_call_updates_what_writes_the_table_and_nothing_in_bodies(backend):
    executable = compiled(backend)
    driver = backend.device.driver
    (root,) = roots(backend)
    (graph,) = driver.graphs
    inside = {node.name for node in graph.walk() if node not in graph.nodes}
    for _ in range(3):
        given = arrays(backend, executable)
        before = len(driver.calls)
        results = executable([*given, 3])
        updated = [c.detail[0] for c in driver.calls[before:] if c.operation == "update_kernel"]
        assert table.TABLE_KERNEL in updated
        assert inside.isdisjoint(updated)
        moving = {*(argument.pointer for argument in given), results[0].pointer}
        assert moving <= {value for node in graph.nodes for value in node.values}
        assert set(root.values) >= {argument.pointer for argument in given}
    assert driver.count("instantiate") == 1


def test_nodes_that_find_addresses_in_the_table_come_after_it(backend):
    compiled(backend)
    (root,) = roots(backend)
    (graph,) = backend.device.driver.graphs
    (loop,) = [node for node in graph.nodes if node.bodies]
    assert root in loop.dependencies
    assert all(node.bodies or root not in node.dependencies for node in graph.nodes)
    assert not root.dependencies


def test_the_table_is_told_among_what_nodes_keep(backend):
    executable = compiled(backend)
    (root,) = [node for node in executable.slots.nodes if node.name == table.TABLE_KERNEL]
    nbytes = table.table_bytes(executable.plan.indirect)
    assert [slot.nbytes for slot in root.slots if slot.what == "pointer table"] == [nbytes]
    readers = [n for n in executable.slots.nodes if "pointer table" in {s.what for s in n.slots}]
    assert len(readers) > 1
    assert "test_pointer_table.py" in root.lines


def test_a_long_table_is_written_by_several_nodes(backend, monkeypatch):
    monkeypatch.setattr(launch_graph, "MOST_ENTRIES", 3)

    def total(*arguments):
        *parts, n = arguments
        return tracegraph.fori_loop(0, n, lambda i, c: sum(parts, c), parts[0])

    executable = compiled(backend, total, 7)
    made = roots(backend)
    assert len(made) == len(launch_graph.table_parts(executable.plan.indirect)) == 3
    assert {len(root.values) for root in made} == {1 + 3}
    starts = [root.values[0] for root in made]
    assert np.diff(starts).tolist() == [3 * 8, 3 * 8]
    given = arrays(backend, executable)
    executable([*given, 3])
    written = {value for root in made for value in root.values[1:]}
    assert {argument.pointer for argument in given} <= written


def test_exported_graphs_have_fixed_addresses_in_their_table(backend):
    executable = compiled(backend)
    given = [*arrays(backend, executable), backend.device.pool.buffer(executable.plan.in_types[-1])]
    exported = executable.export_graph(given)
    (root,) = [n for n in exported.definition.nodes if n.name == table.TABLE_KERNEL]
    assert {argument.pointer for argument in given[:2]} <= set(root.added)


def test_where_bodies_take_updates_there_is_no_table():
    backend = RecordingBackend()
    executable = compiled(backend)
    assert executable.plan.indirect == ()
    assert roots(backend) == []
