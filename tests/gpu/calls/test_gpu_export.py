"""Exported graphs run without tracegraph, and own all that they point to until they are gone."""

import gc
import time
import weakref

import numpy as np
import pytest

import tracegraph
from tests.fakes.foreign_graphs import WAIT_SECONDS, comes
from tests.helpers.compiled import compiled_for, on_device
from tests.helpers.processes import end_of
from tracegraph import cond, fori_loop, while_loop
from tracegraph.errors import ExportError

N = 50_000


def launched(executable, stream):
    executable.launch(stream)
    stream.sync()


def release():
    """Lets go of what graphs that are gone have owned."""
    gc.collect()
    tracegraph.memory_stats()


def poison():
    return [on_device(np.full(N + k, np.nan)) for k in range(16)]


def straight(x, table):
    return x * 2 + table


def looped(x, table):
    y = while_loop(lambda c: c[1] < 3, lambda c: (c[0] + table, c[1] + 1), (x, 0))[0]
    return cond(x[0] >= 0, lambda y: y * 2, lambda y: -y, y, schedule="conditional")


def expected(function, x, table):
    if function is straight:
        return x * 2 + table
    y = x + table + table + table
    return y * 2 if x[0] >= 0 else -y


@pytest.mark.parametrize("function", [straight, looped])
def test_an_exported_graph_computes_what_a_call_does(function, stream):
    table = np.arange(float(N))
    x = on_device(np.ones(N))
    compiled = compiled_for(lambda x: function(x, table), x)
    exported = compiled.export_graph(x)
    executable = exported.definition.instantiate()
    for _ in range(3):
        launched(executable, stream)
        np.testing.assert_array_equal(np.asarray(exported.results), np.asarray(compiled(x)))


@pytest.mark.parametrize("function", [straight, looped])
def test_it_reads_its_arguments_again_at_each_launch(function, stream):
    cupy = pytest.importorskip("cupy")
    table = np.arange(float(N))
    x = cupy.ones(N)
    exported = compiled_for(lambda x: function(x, table), x).export_graph(x)
    executable = exported.definition.instantiate()
    for value in (1.0, 5.0, -3.0):
        x[:] = value
        cupy.cuda.Device().synchronize()
        launched(executable, stream)
        np.testing.assert_array_equal(
            np.asarray(exported.results), expected(function, np.full(N, value), table)
        )


@pytest.mark.parametrize("function", [straight, looped])
def test_it_runs_when_only_the_executable_is_left(function, stream):
    table = np.arange(float(N))

    def only_executable():
        x = on_device(np.ones(N))
        exported = compiled_for(lambda x: function(x, table), x).export_graph(x)
        return exported.definition.instantiate(), exported.results

    executable, result = only_executable()
    release()
    held = poison()
    launched(executable, stream)
    np.testing.assert_array_equal(np.asarray(result), expected(function, np.ones(N), table))
    del held


def test_it_becomes_a_part_of_another_graph(stream):
    from cuda.core.graph import GraphDefinition

    outer = GraphDefinition()
    table = np.arange(float(N))

    def embedded():
        x = on_device(np.ones(N))
        first = compiled_for(lambda x: straight(x, table), x).export_graph(x)
        last = compiled_for(lambda y: y + 1, first.results).export_graph(first.results)
        outer.embed(first.definition).embed(last.definition)
        return last.results

    result = embedded()
    release()
    held = poison()
    executable = outer.instantiate()
    launched(executable, stream)
    np.testing.assert_array_equal(np.asarray(result), 3 + table)
    del held


def test_products_in_loops_keep_their_workspace(stream):
    a = np.random.default_rng(5).standard_normal((128, 128)) / 16

    def power(x):
        return fori_loop(0, 3, lambda i, y: y @ a, x, schedule="conditional")

    x = on_device(np.eye(128))
    exported = compiled_for(power, x).export_graph(x)
    executable, result = exported.definition.instantiate(), exported.results
    whats = {slot.what for node in exported.slots.nodes for slot in node.slots}
    assert {"library handle", "library workspace", "module"} <= whats
    del exported
    release()
    held = poison()
    launched(executable, stream)
    np.testing.assert_allclose(np.asarray(result), a @ a @ a, rtol=1e-9, atol=1e-12)
    del held


def test_owners_go_with_the_last_graph_or_executable_and_not_before(stream):
    tracegraph.reset()
    x = on_device(np.ones(N))
    owner = weakref.ref(x.memory)
    exported = compiled_for(lambda x: looped(x, x), x).export_graph(x)
    del x
    executable = exported.definition.instantiate()
    del exported
    for _ in range(20):
        release()
        assert owner() is not None
    arenas = tracegraph.memory_stats()["arenas"]
    launched(executable, stream)
    executable.close()
    del executable
    assert comes(lambda: owner() is None)
    assert tracegraph.memory_stats()["arenas"] < arenas


def test_owners_outlive_a_launch_in_flight(stream):
    x = on_device(np.zeros(N))
    slow = compiled_for(
        lambda x: fori_loop(0, 20_000, lambda i, x: x + 1, x, schedule="one_kernel"), x
    )
    exported = slow.export_graph(x)
    owner, result = weakref.ref(x.memory), exported.results
    executable = exported.definition.instantiate()
    executable.launch(stream)
    flying = stream.record()
    del x, exported, executable, slow
    release()
    assert flying.is_done or owner() is not None
    held = poison()
    stream.sync()
    np.testing.assert_array_equal(np.asarray(result), np.full(N, 20_000.0))
    assert comes(lambda: owner() is None)
    del held


def test_a_graph_that_is_never_launched_releases_its_owners():
    x = on_device(np.ones(N))
    owner = weakref.ref(x.memory)
    exported = compiled_for(lambda x: x + 1, x).export_graph(x)
    del x, exported
    assert comes(lambda: owner() is None)


def test_many_exports_hold_memory_flat():
    x = on_device(np.ones(N))
    compiled = compiled_for(lambda x: x + 1, x)

    def export_many(count):
        for _ in range(count):
            compiled.export_graph(x)
        release()
        return tracegraph.memory_stats()["arrays"] + tracegraph.memory_stats()["cached"]

    first = export_many(20)
    held = export_many(500)
    assert comes(lambda: export_many(1) <= 2 * first), (first, held)


def test_donated_arguments_are_state_that_launches_carry_on(stream):
    x = on_device(np.zeros(N))
    exported = compiled_for(lambda x: x + 1, x, donate_argnums=0).export_graph(x)
    executable = exported.definition.instantiate()
    for step in range(1, 4):
        launched(executable, stream)
        np.testing.assert_array_equal(np.asarray(exported.results), np.full(N, float(step)))
    np.testing.assert_array_equal(np.asarray(x), np.zeros(N))


def test_what_needs_the_host_is_refused_and_can_be_called_nevertheless():
    def shown(x):
        tracegraph.debug.print("{}", x[0])
        return x + 1

    compiled = compiled_for(shown, np.ones(3))
    with pytest.raises(ExportError, match="it prints"):
        compiled.export_graph(np.ones(3))
    np.testing.assert_array_equal(np.asarray(compiled(np.ones(3))), np.full(3, 2.0))


def test_calls_and_exported_launches_run_side_by_side(stream):
    x = on_device(np.ones((64, 64)))
    compiled = compiled_for(lambda x: (x @ x).sum() + x.sum(), x)
    exported = compiled.export_graph(x)
    executable = exported.definition.instantiate()
    want = float(np.ones((64, 64)).sum() * 65)
    for _ in range(200):
        executable.launch(stream)
        assert float(np.asarray(compiled(x))) == want
    stream.sync()
    assert float(np.asarray(exported.results)) == want


LEAVES_A_GRAPH = """
import sys
import numpy as np
import tracegraph
from cuda.core import Device
from tracegraph import while_loop

x = tracegraph.asarray(np.zeros(1000), device="cuda")
run = tracegraph.jit(lambda x: while_loop(lambda x: x[0] < 5000, lambda x: x + 1, x), device="cuda")
exported = run.lower(x).compile().export_graph(x)
executable = exported.definition.instantiate()
stream = Device(0).create_stream()
executable.launch(stream)
if sys.argv[1] == "dropped":
    del executable, exported, x
"""


@pytest.mark.parametrize("how", ["live", "dropped"])
def test_a_process_with_an_exported_graph_in_flight_ends_cleanly(how):
    assert end_of(LEAVES_A_GRAPH, how) == (0, "", "")


def test_owners_of_a_graph_that_is_gone_are_released_without_a_further_call():
    x, table = on_device(np.ones(N)), np.arange(float(N))
    exported = compiled_for(lambda x: x * table, x).export_graph(x)
    executable, owner = exported.definition.instantiate(), weakref.ref(x.memory)
    del exported, x
    gc.collect()
    assert owner() is not None
    executable.close()
    del executable
    deadline = time.monotonic() + WAIT_SECONDS
    while owner() is not None and time.monotonic() < deadline:
        time.sleep(0.01)  # nothing here builds, allocates or looks at the memory
    assert owner() is None
