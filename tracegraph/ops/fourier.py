"""Discrete Fourier transforms over the last axes, without scale factors; the axes before are a
batch.

Transforms over other axes, of other lengths and with a norm are made of these by
`tracegraph.numpy.fft`. The host runs NumPy's, and CUDA cuFFT's, which have up to three axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter, Linear
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.program import Atom
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import Lanes
from tracegraph.ops.cotangents import Types
from tracegraph.ops.sampling import ramp

NDArray = np.ndarray[Any, Any]

MOST_AXES = 3
"""The most axes that one transform has: cuFFT's limit."""

_REAL = tuple(map(np.dtype, (np.float32, np.float64)))
_COMPLEX = tuple(map(np.dtype, (np.complex64, np.complex128)))
_INDEX = np.dtype(np.int64)


def _check(op: str, x: ArrayType, dtypes: Sequence[np.dtype[Any]], rank: int) -> None:
    if x.dtype not in dtypes:
        raise TypeError(f"{op}: needs {' or '.join(map(str, dtypes))}, got {x}; cast it")
    if not 1 <= rank <= min(x.ndim, MOST_AXES):
        raise ValueError(f"{op}: transforms the last 1 to {MOST_AXES} axes, got {rank} of {x}")
    if 0 in x.shape[-rank:]:
        raise ValueError(f"{op}: needs data points along the axes of the transform, got {x}")


def _converted(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex dtype of a real one, and the real dtype of a complex one."""
    return (_COMPLEX + _REAL)[(_REAL + _COMPLEX).index(dtype)]


def _batched(name: str) -> Callable[..., Atom]:
    """The batching rule of the op of this name."""

    def rule(lanes: Lanes, operands: Sequence[Atom], batched: Sequence[bool], **attrs: Any) -> Atom:
        """Lanes are one more axis of the batch."""
        return lanes.emit(name, operands[0], **attrs)

    return rule


# -- complex to complex ----------------------------------------------------------------------------


def _fft_type(x: ArrayType, *, rank: int, inverse: bool) -> ArrayType:
    _check("fft", x, _COMPLEX, rank)
    return ArrayType(x.dtype, x.shape)


def _fft_reference(x: Any, *, rank: int, inverse: bool) -> NDArray:
    transform = np.fft.ifftn if inverse else np.fft.fftn
    with np.errstate(all="ignore"):
        return np.asarray(transform(x, axes=range(-rank, 0), norm=_unscaled(inverse)))


def _unscaled(inverse: bool) -> Any:
    """The norm by which a direction has no factor."""
    return "forward" if inverse else "backward"


def _fft_samples() -> list[Sample]:
    cases: list[tuple[tuple[int, ...], Any, int, bool]] = [
        ((8,), np.complex64, 1, False),
        ((8,), np.complex128, 1, True),
        ((1,), np.complex128, 1, False),
        ((7,), np.complex128, 1, False),
        ((2, 3, 5), np.complex128, 1, True),
        ((4, 6), np.complex64, 2, True),
        ((2, 3, 4), np.complex128, 2, False),
        ((2, 3, 4), np.complex128, 3, False),
        ((0, 4), np.complex128, 1, False),
    ]
    return [
        Sample((ramp(shape, dtype),), {"rank": rank, "inverse": inverse})
        for shape, dtype, rank, inverse in cases
    ]


def _fft_transpose(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, rank: int, inverse: bool
) -> tuple[Any]:
    return (f.fft(ct, rank=rank, inverse=inverse),)  # its matrix is symmetric


fft = register(
    Op(
        "fft",
        "The discrete Fourier transform over the last axes, forward or inverse, not scaled.",
        _fft_type,
        _fft_reference,
        Opaque(),
        _fft_samples,
        batch=_batched("fft"),
        derivative=Linear(_fft_transpose),
    )
)


# -- real to complex -------------------------------------------------------------------------------


def _rfft_type(x: ArrayType, *, rank: int) -> ArrayType:
    _check("rfft", x, _REAL, rank)
    return ArrayType(_converted(x.dtype), (*x.shape[:-1], x.shape[-1] // 2 + 1))


def _rfft_reference(x: Any, *, rank: int) -> NDArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.fft.rfftn(x, axes=range(-rank, 0)))


def _rfft_samples() -> list[Sample]:
    cases: list[tuple[tuple[int, ...], Any, int]] = [
        ((8,), np.float32, 1),
        ((7,), np.float64, 1),
        ((1,), np.float64, 1),
        ((2, 3, 5), np.float64, 1),
        ((3, 6), np.float64, 2),
        ((2, 4, 5), np.float32, 2),
        ((3, 2, 4), np.float64, 3),
        ((0, 4), np.float64, 1),
    ]
    return [Sample((ramp(shape, dtype),), {"rank": rank}) for shape, dtype, rank in cases]


def _rfft_transpose(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, rank: int
) -> tuple[Any]:
    """The transform of the cotangent, with zeros for the frequencies that the result leaves out."""
    (of_x,) = types
    missing = of_x.shape[-1] - ct.shape[-1]
    inner = (0,) * (ct.ndim - 1)
    whole = f.pad(ct, ct.dtype.type(0), low=(*inner, 0), high=(*inner, missing))
    return (f.real(f.fft(whole, rank=rank, inverse=False)),)


rfft = register(
    Op(
        "rfft",
        "The transform of real numbers over the last axes: of the last, half of the frequencies.",
        _rfft_type,
        _rfft_reference,
        Opaque(),
        _rfft_samples,
        batch=_batched("rfft"),
        derivative=Linear(_rfft_transpose),
    )
)


# -- complex to real -------------------------------------------------------------------------------


def _irfft_type(x: ArrayType, *, size: int) -> ArrayType:
    _check("irfft", x, _COMPLEX, 1)
    if size < 1 or x.shape[-1] != size // 2 + 1:
        raise ValueError(f"irfft: {size} points need {size // 2 + 1} frequencies, got {x}")
    return ArrayType(_converted(x.dtype), (*x.shape[:-1], size))


def _irfft_reference(x: Any, *, size: int) -> NDArray:
    with np.errstate(all="ignore"):
        return np.asarray(np.fft.irfft(x, size, norm="forward"))


def _irfft_samples() -> list[Sample]:
    cases: list[tuple[tuple[int, ...], Any]] = [
        ((8,), np.complex64),
        ((7,), np.complex128),
        ((1,), np.complex128),
        ((2,), np.complex128),
        ((2, 3, 6), np.complex128),
        ((0, 4), np.complex128),
    ]
    return [
        Sample((ramp((*batch, size // 2 + 1), dtype),), {"size": size})
        for (*batch, size), dtype in cases
    ]


def _irfft_transpose(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, size: int
) -> tuple[Any]:
    """Frequencies that stand for two, themselves and their negatives, count twice."""
    found = f.conjugate(f.rfft(ct, rank=1))
    number = found.dtype.type
    k = f.iota(size=size // 2 + 1, dtype=_INDEX)
    own = f.equal(f.remainder(f.add(k, k), np.int64(size)), np.int64(0))  # 0, and size / 2
    return (f.multiply(found, f.where(own, number(1), number(2))),)


irfft = register(
    Op(
        "irfft",
        "The real numbers, `size` of them, whose transform this is over the last axis, not scaled.",
        _irfft_type,
        _irfft_reference,
        Opaque(),
        _irfft_samples,
        batch=_batched("irfft"),
        derivative=Linear(_irfft_transpose),
    )
)
"""Imaginary parts at the frequencies 0 and size / 2 are left out, as in NumPy."""
