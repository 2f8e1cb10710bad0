"""Events of other code in graphs: streams go on in the middle of a launch, or hold it up there."""

import gc

import numpy as np
import pytest

import tracegraph
from tracegraph import event

X = np.arange(50_000.0)


def streams():
    cupy = pytest.importorskip("cupy")
    return cupy, cupy.cuda.Stream(non_blocking=True)


def test_another_stream_reads_what_is_computed_before_a_record():
    cupy, other = streams()
    done = cupy.cuda.Event()
    memory = cupy.zeros(X.size)
    copied = cupy.zeros(X.size)
    cupy.add(memory, 0, out=copied)  # its kernel is loaded

    def f(x):
        write = tracegraph.capture(
            lambda stream, x, y: cupy_copy(cupy, stream, x, memory, y), out=lambda x: x
        )
        y = write(x + 1)
        event.record(done, y)
        return y * 2

    jitted = tracegraph.jit(f, device="cuda")
    for k in range(3):
        result = jitted(X + k)
        with other:
            other.wait_event(done)
            cupy.add(memory, 0, out=copied)
        other.synchronize()
        np.testing.assert_array_equal(copied.get(), X + k + 1)
        np.testing.assert_array_equal(np.asarray(result), 2 * (X + k + 1))


def cupy_copy(cupy, stream, x, memory, y):
    cupy.cuda.runtime.memcpyAsync(memory.data.ptr, x.pointer, x.nbytes, 3, stream.handle)
    cupy.cuda.runtime.memcpyAsync(y.pointer, x.pointer, x.nbytes, 3, stream.handle)


def test_a_launch_waits_in_its_middle():
    cupy, other = streams()
    ready, halo = cupy.cuda.Event(), cupy.zeros(1000)
    cupy.add(halo, 1, out=halo)
    halo[:] = 0
    cupy.cuda.Device().synchronize()

    def f(x, halo):
        before = np.cumsum(x)
        event.wait(ready)
        return before, halo * 2

    jitted = tracegraph.jit(f, device="cuda")
    # what nothing has to wait for but the event
    elements = tracegraph.ArrayType("float64", (1000,))
    raw = tracegraph.owned(halo.data.ptr, elements, owner=halo, device="cuda")
    ready.record(other)
    jitted(X, raw)[1].synchronize()
    for k in range(1, 20):
        with other:
            cupy.matmul(cupy.ones((2000, 2000)), cupy.ones((2000, 2000)))  # takes a while
            cupy.add(halo, 1, out=halo)
            ready.record(other)
        with tracegraph.stream(tracegraph.Stream("cuda")):
            before, doubled = jitted(X, raw)
            np.testing.assert_array_equal(np.asarray(doubled), np.full(1000, 2.0 * k))
            np.testing.assert_allclose(np.asarray(before), np.cumsum(X))


def test_events_of_cuda_core_live_as_long_as_the_graph(stream):
    def function():
        done = stream.record()

        def f(x):
            y = x + 1
            event.record(done, y)
            return y

        return tracegraph.jit(f, device="cuda").lower(X).compile()

    compiled = function()
    gc.collect()
    for k in range(3):
        np.testing.assert_array_equal(np.asarray(compiled(X + k)), X + k + 1)


@pytest.mark.parametrize("options", [{}, {"scratch": "per_launch"}])
def test_they_order_all_that_is_around_them(options):
    cupy, other = streams()
    first, second = cupy.cuda.Event(), cupy.cuda.Event()
    second.record(other)

    def f(x, a):
        y = a @ a
        z = tracegraph.fori_loop(0, 30, lambda i, z: z + y[0, 0], x, schedule="conditional")
        event.record(first, z)
        event.wait(second)
        return tracegraph.cond(z[0] > 0, lambda z: z * 2, lambda z: z, z, schedule="conditional")

    a = np.ones((256, 256))
    jitted = tracegraph.jit(f, device="cuda", **options)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(jitted(X, a)), 2 * (X + 30 * 256))
    first.synchronize()
