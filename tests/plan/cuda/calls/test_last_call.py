"""`last_call` on a device: streams, updates, copies, captures."""

import numpy as np
import pytest

import tracegraph
from lowering.plan.target.features import override
from tracegraph import ArrayType

VECTOR = ArrayType("float64", (1000,))


def array(backend, type_=VECTOR):
    return tracegraph.Array(backend.device.pool.buffer(type_))


def handled(f):
    return {each.path: (each.handling, each.bytes_copied) for each in f.last_call().operands}


def test_arrays_of_the_device_are_read_in_place_and_numbers_go_by_value(backend):
    f = tracegraph.jit(lambda x, dt, y: x * dt + y, device="cuda:0")
    small = np.ones(3)
    g = tracegraph.jit(lambda x, s: x + s.sum(), device="cuda:0")
    f(array(backend), 0.5, array(backend))
    assert handled(f) == {"x": ("in place", 0), "dt": ("by value", 0), "y": ("in place", 0)}
    g(array(backend), small)
    assert handled(g)["s"] == ("by value", 0)


def test_host_arrays_are_copied(backend):
    f = tracegraph.jit(lambda x, y: x + y, device="cuda:0")
    f(np.ones(1000), array(backend))
    assert handled(f) == {"x": ("copied", 8000), "y": ("in place", 0)}
    f(array(backend), array(backend))
    assert handled(f) == {"x": ("in place", 0), "y": ("in place", 0)}
    assert f.last_call().bytes_copied == 0
    assert f.stats()["bytes_copied"] == 8000


def test_arrays_that_are_not_contiguous_are_copied(backend):
    class Strided:
        __cuda_array_interface__ = {  # noqa: RUF012
            "typestr": "<f8",
            "shape": (1000,),
            "strides": (16,),
            "data": (1 << 40, False),
            "version": 3,
        }

    f = tracegraph.jit(lambda x, y: x + y, device="cuda:0")
    f(Strided(), array(backend))
    assert handled(f) == {"x": ("copied", 8000), "y": ("in place", 0)}


def test_donated_arguments(backend):
    f = tracegraph.jit(lambda x: x + 1, device="cuda:0", donate_argnums=0)
    x = f(np.ones(1000))
    assert handled(f) == {"x": ("copied", 8000)}
    f(x)
    assert handled(f) == {"x": ("overwritten", 0)}


def test_what_the_graph_copies_itself(backend):
    f = tracegraph.jit(lambda x, y: (x @ y).sum(), device="cuda:0")
    type_ = ArrayType("float64", (512, 512))
    with override(library_updates=False):
        f(array(backend, type_), array(backend, type_))
    call = f.last_call()
    staged = [e for e in call.operands if e.handling == "copied by the launch"]
    assert sum(e.bytes_copied for e in staged) == f.stats()["bytes_copied"] or not staged


def test_updates_are_counted_for_the_last_call_alone(backend):
    f = tracegraph.jit(lambda x: x + 1, device="cuda:0")
    x, y = array(backend), array(backend)
    kept = [f(x)]
    assert f.last_call().updates >= 1
    kept = [f(x)]
    z = f(x)
    before = f.stats()["updates"]
    del kept
    kept = [f(y)]
    assert f.last_call().updates == f.stats()["updates"] - before
    del kept
    result = f(y)
    del result
    f(y)
    updated = f.stats()["updates"]
    f(y)
    assert (f.last_call().updates, f.stats()["updates"]) == (0, updated)
    assert f.last_call().recognised
    del z


@pytest.mark.parametrize("chain", [lambda x: x + 1, lambda x: (np.sort(x) @ x) + x])
def test_the_stream_is_that_of_the_last_call(backend, chain):
    f = tracegraph.jit(chain, device="cuda:0")
    x = array(backend)
    for stream in (None, 8, 9, None, 9, 8, 8, None):
        if stream is None:
            f(x)
        else:
            with tracegraph.stream(stream):
                f(x)
        assert f.last_call().stream == stream
    text = str(f.last_call())
    assert "on cuda:0, the device's own stream" in text
    with tracegraph.stream(8):
        f(x)
    assert "on cuda:0, stream 0x8" in str(f.last_call())


def test_loops_and_prints_are_calls_as_others(backend):
    def f(x):
        tracegraph.debug.print("{}", x[0])
        return tracegraph.while_loop(lambda x: x[0] < 5, lambda x: x + 1, x, schedule="conditional")

    jitted = tracegraph.jit(f, device="cuda:0")
    for stream in (8, 9):
        with tracegraph.stream(stream):
            jitted(array(backend))
        assert jitted.last_call().stream == stream
    assert handled(jitted) == {"x": ("in place", 0)}


def test_a_call_in_a_capture(backend):
    f = tracegraph.jit(lambda x: x + 1, device="cuda:0")
    x = array(backend)
    f(x)
    backend.device.driver.captured_streams.add(8)
    with tracegraph.stream(8):
        f(x)
    assert f.last_call().captured
    assert "became a child of a graph of other code" in str(f.last_call())
    f(x)
    assert not f.last_call().captured


def test_fallbacks_are_named(backend):
    f = tracegraph.jit(
        lambda x: tracegraph.while_loop(
            lambda x: x[0] < 5, lambda x: x + 1, x, schedule="conditional"
        ),
        device="cuda:0",
    )
    with override(conditional_nodes=False):
        f(array(backend))
    assert "the host drives while_loop" in f.last_call().fallbacks[0]
    assert "fallback: the host drives while_loop" in str(f.last_call())


def test_executables_for_addresses_that_come_back(backend):
    f = tracegraph.jit(lambda x: x + 1, device="cuda:0")
    x = array(backend)
    for _ in range(60):
        x = f(x)
    call = f.last_call()
    assert call.executables == 2
    assert call.updates == 0
    assert "updated 0 nodes, of one of 2 executables" in str(call)


def test_a_warmed_function_counts_as_built(backend):
    f = tracegraph.jit(lambda x: x + 1, device="cuda:0")
    f.warm(VECTOR)
    assert f.last_call().built
    f(array(backend))
    assert not f.last_call().built
