"""Transforms as cuFFT plans, checked by doing in NumPy what cuFFT documents; and who owns plans."""

import gc
from types import SimpleNamespace

import numpy as np
import pytest

import tracegraph
from lowering.cuda.libraries.cufft import Cufft, CufftPlan, layout_of, transform
from lowering.host.executable import HostExecutable
from lowering.plan.calls.fourier import FourierTransform, TransformLayout
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import LibraryNode, walk
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.programs.hand_made_plans import transforms
from tracegraph.errors import OutOfMemoryError
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType

DTYPES = {"fft": ("complex128", "complex128"), "rfft": ("float64", "complex128")}
DTYPES["irfft"] = DTYPES["rfft"][::-1]


class Library:
    """cuFFT, on a NumPy array of bytes as memory: its plans are what `make_plan_many64` is given.

    Inverse transforms to real numbers overwrite their operand, and need real ends.
    """

    Type = SimpleNamespace(C2C="C2C", Z2Z="Z2Z", R2C="R2C", D2Z="D2Z", C2R="C2R", Z2D="Z2D")
    cuFFTError = RuntimeError

    def __init__(self, memory):
        self.memory, self.plans, self.calls = memory, {}, []

    def create(self):
        return len(self.plans)

    def set_auto_allocation(self, handle, allocate):
        assert not allocate
        assert handle not in self.plans, "it is too late when the plan is made"

    def set_stream(self, handle, stream):
        self.calls.append(("set_stream", stream))

    def make_plan_many64(self, handle, *plan):
        self.plans[handle] = plan
        return 64

    def destroy(self, handle):
        self.calls.append(("destroy", handle))

    def exec_z2z(self, handle, source, target, direction):
        self._run(handle, source, target, np.fft.ifftn if direction == 1 else np.fft.fftn, 0)

    def exec_d2z(self, handle, source, target):
        self._run(handle, source, target, np.fft.rfftn, 0)

    def exec_z2d(self, handle, source, target):
        self._run(handle, source, target, np.fft.irfftn, np.nan)

    def _run(self, handle, source, target, function, left):
        rank, n, *embedded, kind, batch = self.plans[handle]
        source_layout, target_layout = embedded[:3], embedded[3:]
        half = [*n[:-1], n[-1] // 2 + 1]
        x = self._view(source, kind[0], half if kind == "Z2D" else n, batch, *source_layout)
        y = self._view(target, kind[2], half if kind == "D2Z" else n, batch, *target_layout)
        axes = range(-rank, 0)
        if function is np.fft.irfftn:
            assert not x[..., 0].imag.any()
            assert n[-1] % 2 or not x[..., -1].imag.any()
            y[...] = np.fft.irfftn(x, s=n, axes=axes, norm="forward")
            x[...] = np.nan
        else:
            y[...] = function(x, axes=axes, norm="forward" if function is np.fft.ifftn else None)

    def _view(self, address, kind, n, batch, embed, stride, distance):
        dtype = np.dtype("complex128" if kind == "Z" else "float64")
        strides = [stride]
        for extent in reversed(embed[1:]):
            strides.insert(0, strides[0] * extent)
        strides = [dtype.itemsize * each for each in (distance, *strides)]
        assert address % 16 == 0
        return np.ndarray((batch, *n), dtype, self.memory, address, strides)


def run(call, memory, addresses):
    library, ended = Library(memory), []
    plan = CufftPlan(library, 7, call, ended)
    assert plan.workspace_bytes == 64
    assert ("set_stream", 7) in library.calls
    transform(call, addresses.__getitem__)(plan)


def embedded(dtype, shape, order, padding):
    """An array in memory of its own: axes in an order, each with some elements behind it."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis], step = step, step * (shape[axis] + padding)
    buffer = Buffer("scratch", 0, ArrayType(dtype, (step + 4,)))
    return StridedArray(buffer, 2, shape, tuple(strides))


CASES = [
    ("fft", (8,), 1, {"inverse": False}, (0,), 0),
    ("fft", (3, 8), 1, {"inverse": True}, (0, 1), 1),
    ("fft", (3, 8), 1, {"inverse": False}, (1, 0), 0),
    ("fft", (2, 3, 5), 1, {"inverse": False}, (2, 0, 1), 0),
    ("fft", (2, 3, 5), 2, {"inverse": False}, (1, 2, 0), 1),
    ("fft", (2, 3, 5), 3, {"inverse": True}, (0, 1, 2), 2),
    ("fft", (4, 1, 5), 2, {"inverse": False}, (0, 1, 2), 0),
    ("fft", (4, 5, 1), 2, {"inverse": False}, (0, 1, 2), 0),
    ("rfft", (3, 7), 1, {}, (0, 1), 1),
    ("rfft", (4, 3, 6), 2, {}, (0, 1, 2), 0),
]


@pytest.mark.parametrize(("name", "shape", "rank", "attrs", "order", "padding"), CASES)
def test_a_plan_reads_and_writes_what_the_call_says(name, shape, rank, attrs, order, padding):
    op, attrs = get(name), {"rank": rank, **attrs}
    source = embedded(DTYPES[name][0], shape, order, padding)
    (out,) = op.result_types([ArrayType(DTYPES[name][0], shape)], attrs)
    target = StridedArray.whole(Buffer("scratch", 1, out))
    call = FourierTransform(op, attrs, source, target, False)
    nbytes = source.buffer.type.nbytes
    start = -(-nbytes // 16) * 16
    memory = np.random.default_rng(0).standard_normal((start + target.buffer.type.nbytes) // 8)
    dtype = source.buffer.type.dtype
    view = np.ndarray(
        shape, dtype, memory, 2 * dtype.itemsize, [dtype.itemsize * s for s in source.strides]
    )
    before, expected = view.copy(), op.reference(view, **attrs)
    run(call, memory, {source.buffer: 0, target.buffer: start})
    found = np.ndarray(out.shape, out.dtype, memory, start)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)
    np.testing.assert_array_equal(view, before)


@pytest.mark.parametrize(
    ("shape", "strides", "rank"),
    [
        ((4, 8), (8, -1), 1),
        ((4, 8), (0, 1), 1),
        ((2, 3, 8), (8, 20, 1), 1),
        ((4, 8), (4, 1), 2),
        ((4, 8), (9, 2), 2),
    ],
)
def test_what_cufft_cannot_describe_is_copied(shape, strides, rank):
    array = StridedArray(Buffer("scratch", 0, ArrayType("complex128", (99,))), 40, shape, strides)
    assert TransformLayout.of(array, rank) is None
    with pytest.raises(ValueError, match=r"scratch\[0\].*copy the operand"):
        layout_of(array, rank)


def calls_of(function, *arguments):
    plan = tracegraph.jit(function, device="cuda").lower(*arguments).plan
    return [node.call for node in walk(plan.graph) if isinstance(node, LibraryNode)]


def test_columns_are_read_where_they_are():
    (call,) = calls_of(lambda x: np.fft.fft(x * 1j, axis=0), np.ones((4, 6)))
    assert (call.points, call.batch, call.source.strides) == ((4,), 6, (1, 6))


def test_real_numbers_that_are_not_aligned_are_copied():
    (call,) = calls_of(lambda x: np.fft.rfft((x + 1)[1:]), np.ones(9))
    assert call.source.offset == 0
    (call,) = calls_of(lambda x: np.fft.rfft((x + 1)[2:]), np.ones(10))
    assert call.source.offset % 2 == 0


def test_lanes_are_one_call():
    (call,) = calls_of(tracegraph.vmap(lambda x: np.fft.fft2(x)), np.ones((5, 4, 6), complex))
    assert (call.points, call.batch) == ((4, 6), 5)


def test_an_inverse_to_real_numbers_has_frequencies_of_its_own(monkeypatch):
    """The library overwrites them, and would read imaginary parts that NumPy leaves out."""

    plain = FourierTransform.run_host.fget

    def overwriting(call):
        if not call.overwrites:
            return plain(call)

        def run(source, target):
            assert not source[..., 0].imag.any()
            assert not source[..., -1].imag.any()
            target[...] = np.fft.irfft(source, norm="forward")
            source[...] = np.nan

        return run

    x = np.arange(15.0).reshape(3, 5) * (1 + 2j)

    def function(x):
        y = x + 1
        return (
            np.fft.irfft(y),
            y,
            tracegraph.fori_loop(0, 9, lambda i, z: np.fft.rfft(np.fft.irfft(z)), y),
        )

    plan = tracegraph.jit(function, device="cuda").lower(x).plan
    calls = [node.call for node in walk(plan.graph) if isinstance(node, LibraryNode)]
    calls = [call for call in calls if call.op.name == "irfft"]
    assert len(calls) >= 2
    assert all(call.source.buffer in call.writes for call in calls)
    monkeypatch.setattr(FourierTransform, "run_host", property(overwriting))
    found = HostExecutable(plan)([x])
    for got, wanted in zip(found, function(x), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-12, 1e-12)


def test_the_host_overwrites_nothing():
    plan = tracegraph.jit(np.fft.irfft, device="host").lower(np.ones(5, complex)).plan
    (call,) = [node.call for node in plan.graph.nodes if isinstance(node, LibraryNode)]
    assert call.writes == {call.target.buffer}
    assert call.source.buffer in plan.inputs


# -- who owns plans --------------------------------------------------------------------------------


def test_plans_are_made_before_the_graph_and_have_its_workspace():
    driver = RecordingDriver()
    executable = RecordingBackend(driver).compile(transforms())
    names = [call.operation for call in driver.calls]
    assert names.count("prepare") == 2
    assert names.count("transform") == 4  # each once outside, then captured
    assert max(i for i, n in enumerate(names) if n == "prepare") < names.index("begin_capture")
    areas = [call.detail for call in driver.calls if call.operation == "use_workspace"]
    assert {nbytes for _, nbytes in areas} == {4096}
    assert executable._default_graph.needed["scratch"] >= 4096 + transforms().arena_bytes
    kinds = [node.kind for node in driver.graphs[0].walk()]
    assert kinds.count("library") == 2


def test_operands_outside_of_the_graph_do_not_overlap():
    driver = RecordingDriver()
    RecordingBackend(driver).compile(transforms())
    runs = [call.detail for call in driver.calls if call.operation == "transform"]
    outside = runs[2]  # the one that overwrites its operand
    assert outside[0] != outside[1]
    assert not {*outside} & {*runs[3]}


def test_a_graph_owns_its_plans_also_when_everything_else_is_gone():
    driver = RecordingDriver()
    executable = RecordingBackend(driver).compile(transforms())
    calls = [*executable._default_graph.definition.slots._owners]
    (made,) = driver.live_executables
    plans = [owner for owner in calls if getattr(owner, "workspace_bytes", 0)]
    assert len(plans) == 2
    assert all(plan in made.slots for plan in plans)


def a_transform():
    """A call of fft, our view of cuFFT, and the library behind it."""
    source, target = (
        StridedArray.whole(Buffer("scratch", i, ArrayType("complex128", (8,)))) for i in (0, 1)
    )
    call = FourierTransform(get("fft"), {"rank": 1, "inverse": False}, source, target, False)
    cufft = Cufft.__new__(Cufft)
    cufft._cufft, cufft._stream, cufft._ended = library, _, _ = Library(np.zeros(1)), 7, []
    return call, cufft, library


def test_a_plan_is_destroyed_behind_its_graphs_when_the_next_is_made():
    call, cufft, library = a_transform()
    plan = cufft.prepare(call)
    del plan
    gc.collect()
    assert ("destroy", 0) not in library.calls, "a capture may be going on"
    kept = cufft.prepare(call)
    assert library.calls.count(("destroy", 0)) == 1
    assert kept.workspace_bytes == 64


def test_what_is_kept_is_freed_for_a_plan_that_lacks_memory():
    driver = RecordingDriver()
    backend = RecordingBackend(driver)
    library = driver.library(Cufft)
    left = [MemoryError("the cuFFT plan")]
    prepare = library.prepare

    def scarce(call):
        if left:
            raise left.pop()
        return prepare(call)

    library.prepare = scarce
    backend.device.pool.take(5 << 20)
    assert backend.device.pool.free_bytes
    backend.compile(transforms())
    assert not left
    assert driver.count("trim"), "what was free went back to the device"
    left = [MemoryError("the cuFFT plan")] * 99
    with pytest.raises(OutOfMemoryError, match=r"rfft 1000 \(the cuFFT plan\)"):
        backend.compile(transforms())


def test_a_lack_of_memory_for_a_plan_is_a_memory_error():
    call, cufft, library = a_transform()

    def fail(*plan):
        raise RuntimeError("CUFFT_ALLOC_FAILED")

    library.make_plan_many64 = fail
    with pytest.raises(MemoryError, match="the cuFFT plan of fft 8"):
        cufft.prepare(call)
    gc.collect()
    assert cufft._ended == [0], "its handle is destroyed with the next plan"
