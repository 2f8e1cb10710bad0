"""Calls inside the captures of other code: torch.cuda.graph, CuPy, cuda.core's GraphBuilder.

A replay reads the arguments anew and owns all that it points to. A refusal leaves the capture as it
was.
"""

import gc
import weakref

import numpy as np
import pytest

import tracegraph
from tests.fakes.foreign_graphs import checked, comes
from tests.helpers.compiled import on_device
from tests.helpers.parameters import in_turn
from tracegraph.errors import CapturingStreamError

N = 50_000


@pytest.fixture(autouse=True)
def opened():
    """The device was used before: what opening it does is not allowed in a global capture."""
    on_device(np.ones(1)).synchronize()


def jitted(function=lambda x: (x * 2 + np.arange(float(N)), x.sum()), **options):
    return tracegraph.jit(function, device="cuda", **options)


def poison():
    return [on_device(np.full(N + k, np.nan)) for k in range(16)]


class Capture:
    """A capture by the driver's own calls, in a mode."""

    def __init__(self, mode):
        from cuda.bindings import driver  # noqa: TID251 - captures, as other libraries do

        self.driver = driver
        self.stream = tracegraph.Stream("cuda")
        self.handle = driver.CUstream(self.stream.__cuda_stream__()[1])
        self.mode = getattr(driver.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{mode}")

    def __enter__(self):
        checked(self.driver.cuStreamBeginCapture(self.handle, self.mode))
        self.choice = tracegraph.stream(self.stream)
        self.choice.__enter__()
        return self

    def __exit__(self, *error):
        self.choice.__exit__(*error)
        self.graph = checked(self.driver.cuStreamEndCapture(self.handle))

    def kinds(self):
        _, count = checked(self.driver.cuGraphGetNodes(self.graph))
        if not count:
            return []
        nodes, _ = checked(self.driver.cuGraphGetNodes(self.graph, count))
        found = [checked(self.driver.cuGraphNodeGetType(node)) for node in nodes]
        return sorted(kind.name.removeprefix("CU_GRAPH_NODE_TYPE_").lower() for kind in found)

    def replay(self):
        if not hasattr(self, "executable"):
            self.executable = checked(self.driver.cuGraphInstantiate(self.graph, 0))
        checked(self.driver.cuGraphLaunch(self.executable, self.handle))
        self.stream.synchronize()

    def destroy(self):
        if hasattr(self, "executable"):
            checked(self.driver.cuGraphExecDestroy(self.executable))
        checked(self.driver.cuGraphDestroy(self.graph))


NAMES_OF_MODES = ["GLOBAL", "THREAD_LOCAL", "RELAXED"]
MODES = pytest.mark.parametrize("mode", NAMES_OF_MODES)


@MODES
@pytest.mark.parametrize("first_call", [True, False])
def test_a_call_becomes_a_child_in_captures_of_every_mode(mode, first_call):
    cupy = pytest.importorskip("cupy")
    function = jitted()
    x = cupy.ones(N)
    if not first_call:
        function(x)[0].synchronize()
    capture = Capture(mode)
    with capture:
        y, total = function(x)
    assert capture.kinds() == ["graph"]
    held = poison()
    for value in (1.0, 5.0, -3.0):
        x[:] = value
        cupy.cuda.Device().synchronize()
        capture.replay()
        np.testing.assert_array_equal(np.asarray(y), 2 * value + np.arange(float(N)))
        assert float(total) == N * value
    capture.destroy()
    np.testing.assert_array_equal(np.asarray(function(x)[0]), -6 + np.arange(float(N)))
    del held


def test_calls_read_the_results_of_calls_before():
    cupy = pytest.importorskip("cupy")
    double, add = jitted(lambda x: x * 2), jitted(lambda x, y: x @ y)
    x = cupy.ones((64, 64))
    add(x, x).synchronize()  # a library that makes its handle may use the legacy stream
    capture = Capture("GLOBAL")
    with capture:
        y = double(x)
        z = add(y, y)
    assert capture.kinds() == ["graph", "graph"]
    x[:] = 3
    cupy.cuda.Device().synchronize()
    capture.replay()
    np.testing.assert_array_equal(np.asarray(z), np.full((64, 64), 64 * 36.0))
    capture.destroy()


def test_what_is_captured_owns_all_that_it_points_to():
    capture = Capture("THREAD_LOCAL")

    def captured():
        table = np.arange(float(N))
        x = on_device(np.ones(N))
        with capture:
            y = jitted(lambda x: x + table)(x)
        return y, weakref.ref(x.memory)

    result, argument = captured()
    gc.collect()
    assert argument() is not None
    held = poison()
    capture.replay()
    np.testing.assert_array_equal(np.asarray(result), 1 + np.arange(float(N)))
    capture.destroy()
    del held
    assert comes(lambda: argument() is None)


def allocation():
    from lowering.cuda.open_devices import open_device

    return open_device(0).driver.allocate(1 << 20)


def pinned():
    from lowering.cuda.open_devices import open_device

    return open_device(0).driver.allocate_host(1 << 20)


def called():
    function = jitted(lambda x: x * 3)
    function(on_device(np.ones(N))).synchronize()
    return function


def printing():
    function = jitted(lambda x: (tracegraph.debug.print("{}", x[0]), x * 5)[1])
    function(on_device(np.ones(N))).synchronize()
    return function


def exported():
    x = on_device(np.ones(N))
    return jitted(lambda x: x * 7).lower(x).compile().export_graph(x)


def of_another_stream():
    stream = tracegraph.Stream("cuda")
    with tracegraph.stream(stream):
        jitted(lambda x: x * 9)(on_device(np.ones(N))).synchronize()
    return stream


@pytest.mark.parametrize(
    ("make", "mode"),
    in_turn([allocation, pinned, called, printing, exported, of_another_stream], NAMES_OF_MODES),
)
def test_what_is_dropped_in_the_middle_leaves_the_capture(make, mode):
    cupy = pytest.importorskip("cupy")
    function, x = jitted(), cupy.ones(N)
    function(x)[0].synchronize()
    dropped = make()
    capture = Capture(mode)
    with capture:
        y, total = function(x)
        del dropped
        gc.collect()
    assert capture.kinds() == ["graph"]  # and to end the capture was no error
    capture.replay()
    assert float(total) == N
    np.testing.assert_array_equal(np.asarray(y), 2 + np.arange(float(N)))
    capture.destroy()


@MODES
def test_a_loop_in_one_kernel_becomes_a_child(mode):
    def root(x):
        step = lambda i, y: (y + x / y) / 2  # noqa: E731
        return tracegraph.fori_loop(0, 30, step, x, schedule="one_kernel")

    x = on_device(np.linspace(1, 100, 1000))
    function = jitted(root)
    capture = Capture(mode)
    with capture:
        y = function(x)
    capture.replay()
    np.testing.assert_allclose(np.asarray(y), np.sqrt(np.linspace(1, 100, 1000)))
    capture.destroy()


def looped(x):
    return tracegraph.fori_loop(0, 3, lambda i, y: y + x, x, schedule="conditional")


def printing(x):
    tracegraph.debug.print("{}", x.sum())
    return x


REFUSED = {
    "loop": (looped, {}, on_device, "a loop at .*test_gpu_foreign_captures.py:.*one_kernel"),
    "print": (printing, {}, on_device, "prints"),
    "host": (lambda x: x + 1, {}, np.asarray, "is in host memory"),
    "donated": (lambda x: x + 1, {"donate_argnums": 0}, on_device, "donated"),
    "scratch": (
        lambda x: (x + 1).sum() * np.cumsum(x),
        {"scratch": "per_launch"},
        on_device,
        "allocates its scratch",
    ),
}


@pytest.mark.parametrize(
    ("case", "mode", "first_call"), in_turn(REFUSED, NAMES_OF_MODES, [True, False], rounds=2)
)
def test_a_refusal_leaves_the_capture(case, mode, first_call):
    function, options, make, match = REFUSED[case]
    function = jitted(function, **options)
    x, target = make(np.ones(1000)), on_device(np.zeros(8, np.uint8))
    if not first_call:
        np.asarray(function(make(np.ones(1000))))
    capture = Capture(mode)
    pointer = target.memory.pointer
    with capture:
        checked(capture.driver.cuMemsetD8Async(pointer, 7, 4, capture.handle))
        with pytest.raises(CapturingStreamError, match=match):
            function(x)
        checked(capture.driver.cuMemsetD8Async(pointer + 4, 9, 4, capture.handle))
    assert capture.kinds() == ["memset", "memset"]
    capture.replay()
    np.testing.assert_array_equal(np.asarray(target), [7] * 4 + [9] * 4)
    capture.destroy()
    assert np.asarray(function(make(np.ones(1000)))).shape == (1000,)


def test_a_capture_that_has_failed_is_refused():
    from cuda.bindings import driver  # noqa: TID251 - captures, as other libraries do

    function, x = jitted(lambda x: x + 1), on_device(np.ones(8))
    function(x).synchronize()
    stream = tracegraph.Stream("cuda")
    handle = driver.CUstream(stream.__cuda_stream__()[1])
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    checked(driver.cuStreamBeginCapture(handle, mode))
    assert driver.cuStreamSynchronize(handle)[0].name != "CUDA_SUCCESS"  # this ends it
    with (
        tracegraph.stream(stream),
        pytest.raises(CapturingStreamError, match="the capture has failed before"),
    ):
        function(x)
    assert driver.cuStreamEndCapture(handle)[0].name != "CUDA_SUCCESS"
    with tracegraph.stream(stream):
        np.testing.assert_array_equal(np.asarray(function(x)), np.full(8, 2.0))


def test_torch_captures_calls_among_its_own_work():
    torch = pytest.importorskip("torch")
    function = jitted(lambda x: np.sin(x) * 2)
    x = torch.ones(N, device="cuda", dtype=torch.float64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = x * 2
        with tracegraph.stream(torch.cuda.current_stream()):
            y = torch.from_dlpack(function(doubled))
        result = y + 1
    del doubled, y
    gc.collect()
    held = poison()
    for value in (1.0, 0.5, -3.0):
        x.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        np.testing.assert_allclose(result.cpu().numpy(), np.sin(2 * value) * 2 + 1)
    graph.reset()
    del held
    np.testing.assert_allclose(np.asarray(function(x)), np.sin(-3.0) * 2)


def test_torch_goes_on_after_a_refusal():
    torch = pytest.importorskip("torch")
    x = torch.ones(1000, device="cuda", dtype=torch.float64)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        with (
            tracegraph.stream(torch.cuda.current_stream()),
            pytest.raises(CapturingStreamError, match="conditional node"),
        ):
            jitted(looped)(y)
        result = y + 1
    x.fill_(4)
    graph.replay()
    torch.cuda.synchronize()
    np.testing.assert_array_equal(result.cpu().numpy(), np.full(1000, 9.0))


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_a_call_on_another_stream_is_refused_before_it_joins(name):
    library = pytest.importorskip(name)
    double = jitted(lambda x: x * 2)
    double(on_device(np.ones(1000))).synchronize()
    if name == "torch":
        x = library.ones(1000, device="cuda", dtype=library.float64)
        graph = library.cuda.CUDAGraph()
        with library.cuda.graph(graph):
            y = x + 1
            with pytest.raises(CapturingStreamError, match=r"inside `with tracegraph\.stream"):
                double(y)
            y = y + 1
        graph.replay()
        library.cuda.synchronize()
        result = y.cpu().numpy()
    else:
        x, y = library.ones(1000), library.empty(1000)
        library.add(x, 1, out=y)
        stream = library.cuda.Stream(non_blocking=True)
        library.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            library.add(x, 2, out=y)
            with pytest.raises(CapturingStreamError, match=r"inside `with tracegraph\.stream"):
                double(y)
            graph = stream.end_capture()
            graph.launch(stream)
        stream.synchronize()
        result = y.get()
    np.testing.assert_array_equal(result, np.full(1000, 3.0))
    np.testing.assert_array_equal(np.asarray(double(y)), np.full(1000, 6.0))


def test_cupy_captures_calls_among_its_own_work():
    cupy = pytest.importorskip("cupy")
    function = jitted(lambda x: x * 2)
    x, doubled, result = cupy.ones(N), cupy.empty(N), cupy.empty(N)
    cupy.add(x, 1, out=result)  # its kernels are loaded
    cupy.multiply(x, 3, out=doubled)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        cupy.multiply(x, 3, out=doubled)
        with tracegraph.stream(stream):
            y = cupy.from_dlpack(function(doubled))
        cupy.add(y, 1, out=result)
        graph = stream.end_capture()
    del y
    held = poison()
    for value in (1.0, 5.0):
        x[:] = value
        cupy.cuda.Device().synchronize()
        graph.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(result.get(), np.full(N, 6 * value + 1))
    del held


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_graph_builder_of_cuda_core(mode):
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    x = on_device(np.ones(N))
    builder = device.create_graph_builder().begin_building(mode)
    with tracegraph.stream(builder):
        y, _ = jitted()(x)
    graph = builder.end_building().complete()
    stream = device.create_stream()
    graph.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(np.asarray(y), 2 + np.arange(float(N)))
    graph.close()
    builder.close()
