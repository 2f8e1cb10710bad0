"""Functions that enqueue work on a stream, captured on a GPU: at every place, and failing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

X = np.arange(1.0, 257.0)


class Doubled:
    """y = 2 x by a kernel of cuda.core's; it counts its calls."""

    def __init__(self) -> None:
        from cuda.core import Program, ProgramOptions

        from lowering.cuda.open_devices import open_device

        text = """extern "C" __global__ void doubled(const double* x, double* y) {
          y[blockIdx.x * blockDim.x + threadIdx.x] = 2 * x[blockIdx.x * blockDim.x + threadIdx.x];
        }"""
        options = ProgramOptions(arch=open_device(0).driver.arch)
        self.kernel = Program(text, "c++", options=options).compile("cubin").get_kernel("doubled")
        self.calls = 0

    def __call__(self, stream: Any, x: Any, y: Any) -> None:
        from cuda.core import LaunchConfig, Stream, launch

        self.calls += 1
        config = LaunchConfig(grid=x.size // 64, block=64)
        own = Stream.from_handle(stream.handle)
        pointers = [np.uint64(array.pointer) for array in (x, y)]
        launch(own, config, self.kernel, *pointers)


def doubled(function: Any, **options: Any) -> Any:
    return tracegraph.capture(function, out=lambda x: x, host=lambda x: 2 * x, **options)


def agrees(f: Any, *arguments: Any) -> None:
    jitted = tracegraph.jit(f, device="cuda")
    expected = np.asarray(tracegraph.jit(f, device="host")(*arguments))
    for _ in range(3):
        moved = [tracegraph.asarray(a, device="cuda") for a in arguments]
        np.testing.assert_array_equal(np.asarray(jitted(*moved)), expected)


def test_at_the_top_in_loops_and_branches() -> None:
    call = doubled(Doubled())
    agrees(lambda x: call(x + 1) - 1, X)
    agrees(lambda x: call(x[::-1]), X)
    agrees(lambda x: tracegraph.fori_loop(0, 20, lambda i, x: call(x) - x / 2, x), X)
    agrees(lambda x: tracegraph.while_loop(lambda x: x[0] < 1e6, call, x), X)
    agrees(lambda x: tracegraph.cond(x[0] > 0, call, lambda x: -x, x), X)
    agrees(lambda x: tracegraph.cond(x[0] < 0, call, lambda x: -x, x), X)


def test_it_runs_when_a_graph_is_built_only() -> None:
    function = Doubled()
    jitted = tracegraph.jit(doubled(function), device="cuda")
    for k in range(5):
        np.testing.assert_array_equal(np.asarray(jitted(X + k)), 2 * (X + k))
    assert function.calls == 2
    with tracegraph.stream(tracegraph.Stream("cuda")):
        np.testing.assert_array_equal(np.asarray(jitted(X)), 2 * X)
    assert function.calls == 3


def test_lanes() -> None:
    call = doubled(Doubled(), batching="sequential")
    agrees(tracegraph.vmap(call), np.stack([X, X + 1, X + 2]))


def refused(function: Any, match: str) -> None:
    call = doubled(function)
    jitted = tracegraph.jit(lambda x: call(x) + 1, device="cuda")
    with pytest.raises(errors.CapturedCallError, match=match):
        jitted(X)
    agrees(doubled(Doubled()), X)  # the device is usable


def test_a_function_that_raises() -> None:
    def before(stream: Any, x: Any, y: Any) -> None:
        raise ValueError("before")

    refused(before, "ValueError: before")
    good = Doubled()

    def behind(stream: Any, x: Any, y: Any) -> None:
        good(stream, x, y)
        if good.calls == 2:
            raise ValueError("behind")

    refused(behind, "ValueError: behind")


def test_a_function_that_waits_for_the_device() -> None:
    from cuda.core import Stream

    good = Doubled()

    def waiting(stream: Any, x: Any, y: Any) -> None:
        good(stream, x, y)
        Stream.from_handle(stream.handle).sync()

    refused(waiting, "captured call .*waiting")


def test_a_function_that_enqueues_nothing() -> None:
    refused(lambda stream, x, y: None, "no nodes")


def test_a_function_that_allocates() -> None:
    from cuda.core import Device, Stream

    def allocating(stream: Any, x: Any, y: Any) -> None:
        own = Stream.from_handle(stream.handle)
        buffer = Device(0).allocate(1024, stream=own)
        buffer.close(own)

    refused(allocating, "captured call .*allocating")


def test_the_graph_keeps_what_the_function_refers_to(stream: Any) -> None:
    import gc
    import weakref

    function = Doubled()
    alive = weakref.ref(function)
    compiled = tracegraph.jit(doubled(function), device="cuda").lower(X).compile()
    exported = compiled.export_graph(X)
    del function
    gc.collect()
    assert alive() is not None
    executable = exported.definition.instantiate()
    executable.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(np.asarray(exported.results), 2 * X)
