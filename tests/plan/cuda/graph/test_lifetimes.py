"""What nodes point to lives as long as the executable that runs them, and no longer."""

import gc
import weakref
from typing import ClassVar

import numpy as np
import pytest

import tracegraph
from lowering.cuda.libraries.cublas import Cublas
from lowering.cuda.streams.shutdown import shut_down
from lowering.plan.owners import Slot
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import (
    ALL,
    VECTOR,
    diamond,
    effects,
    in_place_plan,
    nested_loops,
    products,
)
from tracegraph import ArrayType, cond
from tracegraph.errors import UpdateError


def build(plan, **options):
    backend = RecordingBackend(RecordingDriver(**options))
    return backend.compile(plan), backend.device.driver, backend


def with_constant(x):
    table = np.arange(1000.0)
    return cond(x[0] > 0, lambda x: x * table, lambda x: x - 1, x)


def lowered(function, *types):
    return tracegraph.jit(function, device="host").lower(*types)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_every_node_is_in_the_table_that_the_executable_carries(make):
    executable, driver, _ = build(make())
    (graph,) = driver.graphs
    (made,) = driver.live_executables
    recorded = [node for node in graph.walk() if node.kind != "library"]
    reported = [node for node in executable.slots.nodes if node.kind != "library"]
    assert [node.kind for node in reported] == [node.kind for node in recorded]
    assert made.slots.frozen
    assert made.slots.report(executable.plan.name) == executable.slots


class Code(str):
    """Source that may be referred to weakly."""


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
def test_code_is_held_by_the_executable_that_runs_it(make, monkeypatch):
    loaded = []

    def load(code):
        module = Code(code)
        loaded.append(weakref.ref(module))
        return module

    driver = RecordingDriver()
    monkeypatch.setattr(driver, "load", load)
    executable = RecordingBackend(driver).compile(make())
    (made,) = driver.live_executables
    del executable
    driver.graphs.clear()
    gc.collect()
    modules = [module() for module in loaded]
    assert all(module is not None and module in made.slots for module in modules)


@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("last", ["of the driver", "closed", "dropped"])
def test_owners_go_with_the_last_executable_and_not_before(make, last):
    executable, driver, backend = build(make())
    (made,) = driver.live_executables
    owners = [weakref.ref(memory) for memory in driver.live_memory if memory in made.slots]
    driver.graphs.clear()
    del backend
    if last == "of the driver":
        del executable
    else:
        del made
    gc.collect()
    assert all(owner() is not None for owner in owners)
    if last == "of the driver":
        del made
    else:
        if last == "closed":
            executable.close()
        del executable
    gc.collect()
    assert all(owner() is None for owner in owners)
    assert len(driver.live_memory) == 0


def cycle(backend):
    """A callback that refers to the executable that calls it."""

    def told(step, total):
        return executable

    executable = backend.compile(effects(told))
    return weakref.ref(executable), weakref.ref(told)


def test_an_executable_that_its_own_callback_refers_to_is_collected():
    backend = RecordingBackend()
    driver = backend.device.driver
    gc.disable()
    try:
        executable, told = cycle(backend)
        driver.graphs.clear()
        assert executable() is not None
        assert len(driver.live_executables) == 1
    finally:
        gc.enable()
    gc.collect()
    assert executable() is None
    assert told() is None
    assert len(driver.live_executables) == 0


def test_what_a_failed_build_had_allocated_is_gone_while_its_error_is_looked_at():
    calls = len(build(products())[1].calls)
    driver = RecordingDriver(fail_at=calls)
    with pytest.raises(InjectedError) as error:
        RecordingBackend(driver).compile(products())
    assert "fails as asked" in str(error.value)
    del error
    driver.graphs.clear()
    gc.collect()
    assert len(driver.live_memory) == 0


def test_a_table_names_what_each_node_keeps_with_bytes_and_lines():
    executable, _, _ = build(lowered(with_constant, VECTOR).plan)
    kept = {slot for node in executable.slots.nodes for slot in node.slots}
    assert Slot("constant 0 f64[1000]", 8000) in kept
    assert {slot.what for slot in kept} >= {"module", "constant 0 f64[1000]"}
    assert all(node.slots[0].nbytes > 0 for node in executable.slots.nodes if node.slots)
    kinds = [node.kind for node in executable.slots.nodes]
    assert "if_else" in kinds
    assert all("test_lifetimes.py" in node.lines for node in executable.slots.nodes)
    text = str(executable.slots)
    assert "constant 0 f64[1000] (8,000 B)" in text
    assert len(text.splitlines()) == 2 + len(kinds)


def test_products_keep_the_library_and_its_workspace():
    executable, driver, _ = build(products())
    found = [node for node in executable.slots.nodes if node.kind == "library"]
    assert len(found) == 3
    for node in found:
        whats = [slot.what for slot in node.slots]
        assert whats == ["library handle", "arena", "library workspace"]
        assert "model.py:7" in node.lines
    (made,) = driver.live_executables
    assert driver.library(Cublas) in made.slots


def test_what_kernels_tell_the_host_is_kept():
    executable, _, _ = build(effects())
    kept = {slot.what for node in executable.slots.nodes for slot in node.slots}
    assert {"mailbox", "print ring", "stop flag", "module", "arena"} <= kept


def test_the_function_that_is_told_of_progress_is_named_where_steps_are_counted():
    def told(step, total):
        pass

    executable, _, _ = build(effects(told))
    (node,) = [n for n in executable.slots.nodes if any("callback" in s.what for s in n.slots)]
    line = told.__code__.co_firstlineno
    assert Slot(f"callback told (test_lifetimes.py:{line})", 0) in node.slots
    assert "mailbox" in {slot.what for slot in node.slots}


def test_the_print_ring_is_told_with_its_bytes():
    executable, driver, _ = build(effects())
    (told,) = {
        s.nbytes for node in executable.slots.nodes for s in node.slots if s.what == "print ring"
    }
    assert told in [
        memory.bytes.nbytes for memory in driver.live_memory if hasattr(memory, "bytes")
    ]


def test_the_node_of_small_inputs_has_the_lines_of_those_that_read_them():
    def f(x, a):
        y = np.cumsum(x * a)
        return np.cumsum(y) - a

    executable = RecordingBackend().compile(lowered(f, VECTOR, ArrayType("float64")).plan)
    (load,) = [node for node in executable.slots.nodes if node.name == "tracegraph_load"]
    first = f.__code__.co_firstlineno
    numbers = {int(line.rpartition(":")[2]) - first for line in load.lines.split(", ")}
    assert numbers == {1, 2}


def test_a_loop_is_listed_before_the_nodes_of_its_body():
    executable, _, _ = build(nested_loops())
    kinds = [node.kind for node in executable.slots.nodes]
    assert kinds[:5] == ["kernel", "while", "kernel", "while", "kernel"]


def test_the_host_names_the_same_memory():
    compiled = lowered(with_constant, VECTOR).compile()
    device, _, _ = build(compiled.lowered.plan)
    assert [node.kind for node in compiled.slots.nodes] == [n.kind for n in device.slots.nodes]
    expected = [[s for s in n.slots if s.what != "module"] for n in device.slots.nodes]
    assert [list(node.slots) for node in compiled.slots.nodes] == expected
    assert any(expected)
    compiled.close()
    assert compiled.slots.nodes == ()
    assert str(compiled.slots) == "with_constant: 0 nodes, 0 bytes kept"


def test_the_table_of_an_identity_names_its_copy():
    compiled = lowered(lambda x: x, ArrayType("float64", (3,))).compile()
    (node,) = compiled.slots.nodes
    assert (node.kind, node.slots) == ("kernel", ())


def test_loops_that_nobody_waits_for_are_stopped_at_the_end_of_the_process():
    executable, driver, backend = build(nested_loops())
    driver.busy = True
    results = executable([backend.device.pool.buffer(t) for t in executable.plan.in_types])
    assert not driver.count("raise_flag")
    shut_down(backend.device.timeline)
    assert driver.count("raise_flag") == 1
    assert not driver.busy
    with pytest.raises(tracegraph.errors.StoppedError, match="SystemExit"):
        results[0].to_host()
    shut_down(backend.device.timeline)
    assert driver.count("raise_flag") == 1


class Foreign:
    """Another library's array."""

    __cuda_array_interface__: ClassVar = {
        "version": 3,
        "shape": VECTOR.shape,
        "typestr": "<f8",
        "data": (0x7000000, False),
    }


def test_arguments_in_flight_outlive_their_executable():
    executable, driver, backend = build(diamond())
    array = Foreign()
    held = weakref.ref(array)
    driver.busy = True
    executable([array])
    del executable, array
    gc.collect()
    other = backend.compile(diamond())
    other([Foreign()])
    assert held() is not None
    driver.busy = False
    other([Foreign()])
    assert held() is None


def test_loops_in_flight_outlive_their_executable():
    executable, driver, backend = build(nested_loops())
    driver.busy = True
    executable([])
    del executable
    driver.graphs.clear()
    gc.collect()
    assert len(driver.live_executables) == 1
    driver.busy = False
    backend.device.timeline.settle()
    gc.collect()
    assert len(driver.live_executables) == 0


@pytest.mark.parametrize("look", ["synchronize", "to_host", "memory_stats"])
def test_an_array_of_another_library_is_let_go_by_the_wait_for_a_result(look):
    executable, _, backend = build(diamond())
    array = Foreign()
    held = weakref.ref(array)
    results = executable([array])
    del array
    if look == "memory_stats":
        del executable
        backend.device.memory_stats()
    else:
        getattr(results[0], look)()
    assert held() is None


class Strided(Foreign):
    """One that has to be packed."""

    __cuda_array_interface__: ClassVar = {**Foreign.__cuda_array_interface__, "strides": (16,)}


@pytest.mark.parametrize(("make", "kind"), [(diamond, Strided), (in_place_plan, Foreign)])
def test_what_a_call_has_begun_to_copy_is_held_until_it_is_copied(make, kind, monkeypatch):
    executable, driver, _ = build(make())
    array = kind()
    held = weakref.ref(array)
    driver.busy = True

    def refuse(*_):
        raise RuntimeError("as told")

    monkeypatch.setattr(driver, "_update", refuse)
    with pytest.raises(UpdateError):
        executable([array])
    monkeypatch.undo()
    del array
    gc.collect()
    assert held() is not None
    driver.busy = False
    executable([Foreign()])
    assert held() is None
