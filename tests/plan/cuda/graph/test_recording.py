"""The graph that is built equals the Plan, and calls update it instead of building again."""

import gc
import weakref

import numpy as np
import pytest

from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Graph
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.foreign_arrays import Foreign
from tests.programs.hand_made_plans import (
    SCALAR,
    VECTOR,
    copy_kernel,
    diamond,
    nested_loops,
    plan,
    products,
    small_input,
)
from tracegraph.ir.types import ArrayType


def build(plan, **options):
    driver = RecordingDriver(**options)
    backend = RecordingBackend(driver)
    return backend.compile(plan), driver, backend


def device_array(backend, type_):
    return backend.device.pool.buffer(type_)


def test_nodes_and_edges_are_the_plans():
    plan = diamond()
    _, driver, _ = build(plan)
    (graph,) = driver.graphs
    assert [node.kind for node in graph.nodes] == ["kernel"] * 4
    assert graph.edges == plan.graph.edges
    assert driver.count("instantiate") == 1


def test_edges_between_kernels_alone_are_programmatic():
    for example in (diamond(), products(), nested_loops(), small_input()):
        _, driver, _ = build(example)
        for node in driver.graphs[0].walk():
            kernels = {before for before in node.dependencies if before.kind == "kernel"}
            assert node.pdl == (kernels if node.kind == "kernel" else set())


def test_without_programmatic_edges_there_are_the_same_of_the_other_kind():
    for options in ({"lacks": ["programmatic_edges"]}, {}):
        driver = RecordingDriver()
        RecordingBackend(driver, **options).compile(diamond())
        (graph,) = driver.graphs
        assert graph.edges == diamond().graph.edges
        assert any(node.pdl for node in graph.nodes) == (not options)


def test_conditionals_nest_as_in_the_plan_and_conditions_belong_to_their_graph():
    _, driver, _ = build(nested_loops())
    (top,) = driver.graphs
    assert [node.kind for node in top.nodes] == ["kernel", "while", "kernel", "switch"]
    (body,) = top.nodes[1].bodies
    assert [node.kind for node in body.nodes] == ["kernel", "while", "kernel", "if_else", "kernel"]
    assert body.edges == {(0, 1), (1, 2), (2, 3), (3, 4)}
    then, otherwise = body.nodes[3].bodies
    assert (len(then.nodes), len(otherwise.nodes)) == (1, 0)
    assert len(top.nodes[3].bodies) == 3
    outer, inner = top.nodes[1].condition, body.nodes[1].condition
    assert outer in top.nodes[0].values
    assert outer in body.nodes[4].values
    assert inner in body.nodes[0].values
    assert inner in body.nodes[1].bodies[0].nodes[0].values


def test_a_condition_set_outside_the_graph_of_its_node_is_refused():
    plan = nested_loops()
    outer = plan.graph.nodes[1]
    misplaced = Graph((outer.body.nodes[0], *plan.graph.nodes), plan.graph.edges)
    object.__setattr__(plan, "graph", misplaced)
    with pytest.raises(ValueError, match=r"model\.py:7.*condition 1"):
        build(plan)


def test_products_share_a_workspace_and_so_run_one_after_the_other():
    _, driver, _ = build(products())
    (graph,) = driver.graphs
    assert [node.kind for node in graph.nodes] == [
        "kernel",
        "library",
        "library",
        "kernel",
        "while",
        "kernel",
    ]
    assert {(1, 2), (2, 4)} <= graph.edges
    (body,) = graph.nodes[4].bodies
    assert body.nodes[1].dependencies == (body.nodes[0],)
    operations = [call.operation for call in driver.calls]
    first = operations.index("begin_capture")
    assert operations[first - 5 : first] == [
        "use_workspace",
        "synchronize",
        "multiply",
        "synchronize_capture_stream",
        "use_workspace",
    ]
    workspaces = [call.detail for call in driver.calls if call.operation == "use_workspace"]
    warm_ups, captures = set(workspaces[::2]), set(workspaces[1::2])
    assert len(warm_ups) == len(captures) == 1
    assert warm_ups.isdisjoint(captures)


@pytest.mark.parametrize(
    ("kinds", "found", "remedy"),
    [
        (("kernel", "mem_alloc"), "mem_alloc", "give it a workspace"),
        (("pageable_memcpy",), "pageable_memcpy", "use pinned or device memory"),
        (("host", "kernel"), "host", "calls back to the host"),
        (("event_record", "wait_event"), "event_record, wait_event", "use one stream"),
        ((), "no nodes", "compute it outside"),
    ],
)
def test_a_captured_node_that_bodies_may_not_hold_is_named_with_the_users_line(
    kinds, found, remedy
):
    expected = rf"product at .*model\.py:7.* was captured as .*{found}.*{remedy}.*"
    with pytest.raises(ValueError, match=expected):
        build(products(), library_kinds=kinds)


def test_a_captured_call_may_be_several_nodes_of_legal_kinds():
    _, driver, _ = build(products(), library_kinds=("memset", "kernel", "kernel", "memcpy"))
    assert driver.count("instantiate") == 1


def test_fixed_memory_is_in_the_table_and_call_memory_is_not():
    executable, driver, backend = build(diamond())
    x = device_array(backend, VECTOR)
    results = executable([x])
    (made,) = driver.live_executables
    assert made.slots.frozen
    (memory,) = (m for m in driver.live_memory if m in made.slots)
    first, middle, _, last = driver.graphs[0].nodes
    inside = range(memory.pointer, memory.pointer + memory.nbytes)
    assert [value in inside for value in middle.values] == [True, True]
    assert sorted(v in inside for v in first.values) == [False, True]
    assert sorted(v in inside for v in last.values) == [False, True]
    assert x.pointer not in inside
    assert results[0].pointer not in inside


def test_the_executable_of_the_driver_alone_keeps_fixed_memory_alive():
    executable, driver, backend = build(diamond())
    (made,) = driver.live_executables
    memory = weakref.ref(next(iter(driver.live_memory)))
    driver.graphs.clear()
    del executable, backend
    gc.collect()
    assert memory() is not None
    del made
    gc.collect()
    assert memory() is None


def test_moving_an_array_updates_only_the_nodes_that_use_it():
    executable, driver, backend = build(diamond())
    x, y = device_array(backend, VECTOR), device_array(backend, VECTOR)
    kept = list(executable([x]))
    assert driver.count("update_kernel") == 2
    nodes = driver.graphs[0].nodes
    assert nodes[0].values[1 if nodes[0].values[1] == x.pointer else 0] == x.pointer
    kept += executable([x])
    assert driver.count("update_kernel") == 3
    kept += executable([y])
    assert driver.count("update_kernel") == 5
    assert y.pointer in nodes[0].values
    assert (driver.count("instantiate"), driver.count("launch")) == (1, 3)
    assert len({result.pointer for result in kept} | {x.pointer, y.pointer}) == 5


def test_a_result_that_is_dropped_is_reused_and_then_nothing_is_updated():
    executable, driver, backend = build(diamond())
    x = device_array(backend, VECTOR)
    address = executable([x])[0].pointer
    before = driver.count("update_kernel"), driver.count("allocate")
    assert executable([x])[0].pointer == address
    assert (driver.count("update_kernel"), driver.count("allocate")) == before


def test_a_scalar_travels_in_the_load_kernel_and_a_device_scalar_is_read_in_place():
    executable, driver, backend = build(small_input())
    nodes = driver.graphs[0].nodes
    load, scalar, vector, fixed = nodes
    assert scalar.dependencies == (load,)
    assert vector.dependencies == fixed.dependencies == ()
    x = device_array(backend, VECTOR)
    slot = next(value for value in scalar.values if value)
    executable([5, x])
    assert load.values == [slot, 5]
    executable([np.int64(-1), x])
    assert load.values == [slot, 2**64 - 1]
    assert slot in scalar.values
    on_device = device_array(backend, SCALAR)
    executable([on_device, x])
    assert on_device.pointer in scalar.values
    executable([7, x])
    assert slot in scalar.values
    assert load.values == [slot, 7]
    assert executable.stats()["bytes_copied"] == 0
    assert driver.count("instantiate") == 1


def test_a_large_host_array_is_copied_once_per_call():
    executable, driver, _ = build(small_input())
    before = driver.count("copy_to_device")
    executable([1, np.ones(1000)])
    executable([1, np.ones(1000)[::-1]])
    assert driver.count("copy_to_device") == before + 2
    assert executable.stats()["bytes_copied"] == 16000


def test_a_foreign_array_is_used_in_place_at_an_offset_and_packed_if_strided():
    executable, driver, _ = build(diamond())
    executable([Foreign(0x7000008)])
    first = driver.graphs[0].nodes[0]
    assert 0x7000008 in first.values
    assert driver.count("launch_kernel") == 0
    executable([Foreign(0x7000000, strides=(16,))])
    (pack,) = [call for call in driver.calls if call.operation == "launch_kernel"]
    assert pack.detail[1] in first.values
    assert pack.detail[2:7] == (0x7000000, 1000, 8, 1000, 2)
    assert executable.stats()["bytes_copied"] == 8000


def test_foreign_arrays_are_not_held_after_their_launch_has_passed():
    executable, _, backend = build(diamond())
    for following in (Foreign(0x7000000), device_array(backend, VECTOR)):
        array = Foreign(0x7000000)
        dropped = weakref.ref(array)
        executable([array])
        del array
        executable([following])
        gc.collect()
        assert dropped() is None


@pytest.mark.parametrize(
    "arguments",
    [[], [np.ones(1000, np.float32)], [np.ones(999)], [Foreign(256, typestr="<f4")]],
)
def test_wrong_arguments_raise_and_leave_the_executable_usable(arguments):
    executable, driver, backend = build(diamond())
    with pytest.raises(TypeError):
        executable(arguments)
    assert driver.count("launch") == 0
    executable([device_array(backend, VECTOR)])
    assert driver.count("launch") == 1


def test_a_closed_executable_raises_and_can_be_closed_again():
    executable, driver, backend = build(diamond())
    executable.close()
    executable.close()
    assert driver.count("close") == 1
    driver.graphs.clear()
    gc.collect()
    assert len(driver.live_memory) == 0
    with pytest.raises(RuntimeError, match="closed"):
        executable([device_array(backend, VECTOR)])


def test_an_empty_plan_has_an_empty_graph():
    empty = Buffer("output", 0, VECTOR)
    plan = diamond()
    object.__setattr__(plan, "graph", Graph((), frozenset()))
    object.__setattr__(plan, "outputs", (empty,))
    executable, driver, backend = build(plan)
    (result,) = executable([device_array(backend, VECTOR)])
    assert result.type == VECTOR
    assert driver.graphs[0].nodes == []


def test_an_empty_constant_is_somewhere():
    nothing = ArrayType("float64", (0,))
    fixed, out = Buffer("const", 0, nothing), Buffer("output", 0, nothing)
    made = plan([copy_kernel(out, fixed)], set(), [], [out], constants=[(fixed, np.zeros(0))])
    executable, driver, _ = build(made)
    assert executable([])[0].type == nothing
    assert 0 not in driver.graphs[0].nodes[0].values


def test_loop_bodies_are_graphs_of_their_own():
    plan = nested_loops()
    assert isinstance(plan.graph.nodes[1], WhileNode)
    _, driver, _ = build(plan)
    assert driver.count("new_graph") == 1
    assert driver.count("create_condition") == plan.conditions
