"""Fourier transforms as cuFFT calls, each by a plan of its own."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from lowering.cuda.libraries.bindings import binding
from lowering.plan.calls.fourier import FourierTransform, TransformLayout
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer import Buffer

FORWARD, INVERSE = -1, 1


def transform(
    call: FourierTransform, address: Callable[[Buffer], int]
) -> Callable[[CufftPlan], None]:
    """What issues a transform."""
    source, target = call.source.address(address), call.target.address(address)
    return lambda plan: plan.transform(source, target)


class CufftPlan:
    """The plan of one call, on a stream: the tables that its kernels read.

    Graphs that captured it own it. Its memory is freed with the next plan that is made: freeing
    waits for the device, and must not happen in a capture, as it could where the last reference is
    dropped.
    """

    def __init__(self, library: Any, stream: int, call: FourierTransform, ended: list[int]) -> None:
        self._library = library
        self._handle: int = library.create()
        end = weakref.finalize(self, ended.append, self._handle)
        end.atexit = False  # the process's end frees it anyhow
        self._run = _execution(library, call)
        library.set_auto_allocation(self._handle, 0)
        library.set_stream(self._handle, stream)
        self.workspace_bytes: int = _make(library, self._handle, call)

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Set the work area."""
        if nbytes:
            self._library.set_work_area(self._handle, pointer)

    def transform(self, source: int, target: int) -> None:
        """Issue the transform."""
        self._run(self._handle, source, target)


class Cufft:
    """cuFFT on one stream: makes plans, and frees those that no graph owns any more."""

    prepared: ClassVar[type] = CufftPlan

    def __init__(self, stream: int) -> None:
        self._cufft = binding("cufft")
        self._stream = stream
        self._ended: list[int] = []

    def prepare(self, call: FourierTransform) -> CufftPlan:
        """The plan of a call.

        Raises:
            MemoryError: the device has not enough memory for its tables.
        """
        while self._ended:
            self._cufft.destroy(self._ended.pop())
        try:
            return CufftPlan(self._cufft, self._stream, call, self._ended)
        except self._cufft.cuFFTError as error:
            if "ALLOC_FAILED" not in str(error):
                raise
            raise MemoryError(f"the cuFFT plan of {call.name}") from error

    def use_workspace(self, pointer: int, nbytes: int) -> None:
        """Nothing: each plan has its own."""


def _make(library: Any, handle: int, call: FourierTransform) -> int:
    """Plan a call, and return the bytes of its work area."""
    kind = library.Type
    types = {
        ("fft", 8): kind.C2C,
        ("fft", 16): kind.Z2Z,
        ("rfft", 4): kind.R2C,
        ("rfft", 8): kind.D2Z,
        ("irfft", 8): kind.C2R,
        ("irfft", 16): kind.Z2D,
    }
    source, target = (layout_of(array, call.rank) for array in (call.source, call.target))
    nbytes: int = library.make_plan_many64(
        handle,
        call.rank,
        [*call.points],
        [*source.extents],
        source.stride,
        source.distance,
        [*target.extents],
        target.stride,
        target.distance,
        types[call.op.name, call.source.buffer.type.dtype.itemsize],
        call.batch,
    )
    return nbytes


def layout_of(array: StridedArray, rank: int) -> TransformLayout:
    """The layout of an operand.

    Raises:
        ValueError: cuFFT has no such layout.
    """
    found = TransformLayout.of(array, rank)
    if found is None:
        raise ValueError(
            f"a library transform over {rank} axes cannot read {array} of shape {array.shape}; "
            "copy the operand first"
        )
    return found


def _execution(library: Any, call: FourierTransform) -> Callable[[int, int, int], None]:
    single = call.target.buffer.type.dtype.itemsize * (2 if call.op.name == "irfft" else 1) == 8
    match call.op.name:
        case "rfft":
            return library.exec_r2c if single else library.exec_d2z  # type: ignore[no-any-return]
        case "irfft":
            return library.exec_c2r if single else library.exec_z2d  # type: ignore[no-any-return]
    run = library.exec_c2c if single else library.exec_z2z
    direction = INVERSE if call.inverse else FORWARD
    return lambda handle, source, target: run(handle, source, target, direction)
