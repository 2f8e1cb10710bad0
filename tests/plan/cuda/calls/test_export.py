"""Exported graphs own all that they point to, arguments and results as well."""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from lowering.cuda.graph.definition import Definition
from lowering.errors import NotOpenError, UnfinishedError
from lowering.plan.owners import SlotTable
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.corpus import CASES
from tests.helpers.running import lowered
from tests.programs.hand_made_plans import (
    VECTOR,
    diamond,
    effects,
    memory_for,
    nested_loops,
    products,
    small_input,
)
from tracegraph import tree
from tracegraph.errors import ClosedError, ExportError, StoppedError

SILENT = (diamond, small_input, nested_loops, products)


def exported(make):
    backend = RecordingBackend()
    made = make()
    executable = backend.compile(made)
    arguments = memory_for(made, backend)
    return executable, executable.export_graph(arguments), arguments, backend


@pytest.mark.parametrize("make", SILENT, ids=lambda make: make.__name__)
def test_the_graph_is_complete_and_tied_to_frozen_slots(make):
    executable, given, _, backend = exported(make)
    graph = given.definition
    assert graph is backend.device.driver.graphs[-1]
    assert graph.tied.frozen
    assert given.slots == graph.tied.report(executable.plan.name)
    kinds = [node.kind for node in given.slots.nodes if node.kind != "library"]
    assert kinds == [node.kind for node in graph.walk() if node.kind != "library"]
    passed = {value for node in graph.walk() for value in node.added}
    used = {result.pointer for result in given.results if result.type.size}
    assert used <= passed
    assert [result.type for result in given.results] == [
        buffer.type.strong() for buffer in executable.plan.outputs
    ]


@pytest.mark.parametrize("name", list(CASES)[::2])
def test_every_node_of_a_program_points_to_what_the_graph_owns(name):
    """An address that no slot covers raises."""
    case = CASES[name]
    backend = RecordingBackend()
    executable = backend.compile(lowered(case.function, *case.arguments, device="cuda").plan)
    for arguments in (memory_for(executable.plan, backend), tree.leaves(case.arguments)):
        given = executable.export_graph(arguments)
        types = [buffer.type.strong() for buffer in executable.plan.outputs]
        assert [result.type for result in given.results] == types


@pytest.mark.parametrize("make", SILENT, ids=lambda make: make.__name__)
def test_owners_live_until_the_last_executable_made_of_it_is_gone(make):
    executable, given, arguments, backend = exported(make)
    driver = backend.device.driver
    operands = [weakref.ref(array) for array in (*arguments, *given.results)]
    memory = [weakref.ref(piece) for piece in driver.live_memory]
    made = driver.instantiate(given.definition)
    driver.graphs.clear()
    del executable, given, arguments, backend
    gc.collect()
    assert all(operand() is not None for operand in operands)
    assert any(piece() is not None for piece in memory)
    del made
    gc.collect()
    assert all(operand() is None for operand in operands)
    assert all(piece() is None for piece in memory)


def test_scratch_is_shared_with_neither_calls_nor_other_exported_graphs():
    executable, _, (x,), backend = exported(diamond)
    executable.export_graph([x])
    called, one, other = (
        {value for node in graph.walk() for value in node.added}
        for graph in backend.device.driver.graphs
    )
    assert one & other == {x.pointer}
    assert called.isdisjoint(one | other)


def test_the_stream_is_waited_for_before_a_graph_is_given_away():
    backend = RecordingBackend()
    executable = backend.compile(small_input())
    executable.export_graph([3, np.ones(1000)])
    operations = [call.operation for call in backend.device.driver.calls]
    assert operations[-2:] == ["tie", "synchronize"]


def test_an_argument_that_is_stopped_while_it_is_waited_for_is_refused(monkeypatch):
    executable, _, _, backend = exported(diamond)
    loop, driver = backend.compile(effects()), backend.device.driver
    driver.busy = True
    stopped = loop([backend.device.pool.buffer(VECTOR)])
    timeline = backend.device.timeline
    settle = timeline.settle

    def stopping():
        timeline.stop(KeyboardInterrupt())
        settle()

    monkeypatch.setattr(timeline, "settle", stopping)
    refused = len(driver.graphs)
    with pytest.raises(StoppedError, match="KeyboardInterrupt"):
        executable.export_graph(stopped)
    operands = weakref.ref(driver.graphs[refused].tied)
    del driver.graphs[refused]
    gc.collect()
    assert operands() is None


def test_calls_go_on_beside_an_exported_graph():
    executable, given, _, backend = exported(small_input)
    before = [node.added for node in given.definition.walk()]
    for _ in range(3):
        executable([3.0, backend.device.pool.buffer(VECTOR)])
    assert [node.added for node in given.definition.walk()] == before
    assert executable.stats()["launches"] == 3
    executable.close()
    assert given.definition.tied.nbytes > 0


def test_the_slots_name_arguments_and_results():
    _, given, _, _ = exported(diamond)
    whats = {slot.what for node in given.slots.nodes for slot in node.slots}
    assert {"argument 0 f64[1000]", "result 0 f64[1000]", "module"} <= whats


def test_arguments_from_the_host_are_copied_once():
    backend = RecordingBackend()
    executable = backend.compile(small_input())
    copied = backend.device.driver.count("copy_to_device")
    given = executable.export_graph([3, np.ones(1000)])
    assert backend.device.driver.count("copy_to_device") == copied + 2
    load = [node for node in given.definition.walk() if "load" in node.name]
    assert not load  # no call passes values


def test_an_output_over_an_input_goes_to_a_copy_that_launches_carry_on():
    run = tracegraph.jit(lambda x: x + 1, device="host", donate_argnums=0)
    backend = RecordingBackend()
    executable = backend.compile(run.lower(VECTOR).plan)
    x = backend.device.pool.buffer(VECTOR)
    given = executable.export_graph([x])
    (result,) = given.results
    assert result.pointer != x.pointer
    (node,) = given.definition.walk()
    assert set(node.added) == {result.pointer}


def test_loops_read_a_flag_that_nobody_raises():
    _, given, _, backend = exported(nested_loops)
    shared = backend.device.timeline.stop_flag
    assert shared not in given.definition.tied
    assert all(shared.pointer not in node.added for node in given.definition.walk())


@pytest.mark.parametrize("make", [small_input, nested_loops, products])
def test_an_export_that_fails_anywhere_leaves_nothing(make):
    executable, _, arguments, backend = exported(make)
    built = len(backend.device.driver.calls)
    executable.export_graph(arguments)
    per_export = len(backend.device.driver.calls) - built
    for number in range(1, per_export + 1):
        executable, first, arguments, backend = exported(make)
        del first
        driver = backend.device.driver
        driver.graphs.clear()
        gc.collect()
        backend.device.heap.trim()
        live = len(driver.live_memory)
        driver.fail_at = len(driver.calls) + number
        with pytest.raises(InjectedError):
            executable.export_graph(arguments)
        driver.fail_at = None
        assert driver.open_captures == 0
        driver.graphs.clear()
        gc.collect()
        backend.device.heap.trim()
        assert len(driver.live_memory) == live
        executable.export_graph(arguments)


def test_what_the_host_has_to_hear_of_is_not_exported():
    backend = RecordingBackend()
    made = effects()
    executable = backend.compile(made)
    with pytest.raises(ExportError, match="prints, checks, calls back or shows progress"):
        executable.export_graph(memory_for(made, backend))


def test_what_the_host_drives_is_not_exported():
    backend = RecordingBackend(lacks=["conditional_nodes"])
    made = nested_loops()
    executable = backend.compile(made)
    with pytest.raises(ExportError, match="the host drives its loops"):
        executable.export_graph(memory_for(made, backend))


def test_a_closed_executable_exports_nothing():
    executable, _, arguments, _ = exported(diamond)
    executable.close()
    with pytest.raises(ClosedError):
        executable.export_graph(arguments)
    with pytest.raises(TypeError, match="takes 1 arrays, got 0"):
        executable.export_graph([])


def test_a_definition_is_given_away_complete_and_once():
    driver = RecordingDriver()
    definition = Definition(driver, SlotTable(), "step")
    with pytest.raises(UnfinishedError, match="it is new"):
        definition.give_away()
    with definition.building() as graph:
        pass
    assert definition.give_away() is graph
    assert definition.state == "given away"
    for late in (definition.give_away, definition.instantiate):
        with pytest.raises(UnfinishedError, match="it is given away"):
            late()
    with pytest.raises(NotOpenError):
        definition.add_conditional(graph, [], "while", 0, 1, None)
