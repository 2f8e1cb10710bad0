"""Transforms along several axes, the last one first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.dispatching.families import numpy_family
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.fft.plans import (
    Step,
    complex_to_complex,
    complex_to_real,
    operand,
    real_operand,
    real_to_complex,
    step,
)

__all__ = ["fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn"]

_Ints = Sequence[int] | None


@numpy_family
def _complex(
    name: str,
    a: Any,
    s: _Ints = None,
    axes: _Ints = None,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """{summary}

    Shape: that of `a`, with `s` along the axes.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: an axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.{name}({call})
    {result}
    """
    a = as_array(a)
    steps = _steps(a, s, axes)[::-1]
    found = complex_to_complex(operand(a), steps, name.startswith("i"), norm) if steps else a
    return stored(f"fft.{name}", found, out)


@numpy_family
def _halved(
    name: str,
    a: Any,
    s: _Ints = None,
    axes: _Ints = None,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """{summary}

    Shape: that of `a`, with `s` along the axes, and n // 2 + 1 along the last of them.
    Dtype: complex64 for float16 and float32; else complex128.

    Raises:
        IndexError: an axis is out of range, or there is none.
        TypeError: the numbers are complex, or a dtype that NumPy does not transform.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.{name}({call})
    {result}
    """
    a = real_operand(a, name)
    found = real_to_complex(a, _some(name, _steps(a, s, axes))[::-1], norm)
    return stored(f"fft.{name}", found, out)


@numpy_family
def _restored(
    name: str,
    a: Any,
    s: _Ints = None,
    axes: _Ints = None,
    norm: str | None = None,
    out: Any = None,
) -> Any:
    """{summary}

    Shape: that of `a`, with `s` along the axes, by default 2 (m - 1) of m elements along the last
    of them.
    Dtype: float32 for float32 and complex64; else float64.

    Raises:
        IndexError: an axis is out of range, or there is none.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.{name}({call})
    {result}
    """
    a = operand(a)
    *others, last = _some(name, _steps(a, s, axes, halved=True))
    if others:
        a = complex_to_complex(a, others, True, norm)
    return stored(f"fft.{name}", complex_to_real(a, last, norm), out)


def _steps(a: Any, s: _Ints, axes: _Ints, *, halved: bool = False) -> list[Step]:
    """A step for each axis, in order; `halved` if along the last axis are half of the frequencies.

    Along an axis that comes up again, the default are the points of `a` all the same.
    """
    if axes is None:
        axes = range(-(a.ndim if s is None else len(s)), 0)
    sizes = [None] * len(axes) if s is None else list(s)
    if len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    last = len(axes) - 1 if halved else -1
    return [
        step(a, a.shape[axis] if n == -1 else n, axis, halved=k == last)
        for k, (n, axis) in enumerate(zip(sizes, axes, strict=True))
    ]


def _some(name: str, steps: list[Step]) -> list[Step]:
    if not steps:
        raise IndexError(f"numpy.fft.{name} needs an axis")
    return steps


_NUMBERS, _FREQUENCIES = "[[1.0, 2.0], [3.0, 4.0]]", "[[10.0, -2.0], [-4.0, 0.0]]"
_FORWARD = {
    "call": _NUMBERS,
    "result": "array([[10.+0.j, -2.+0.j],\n           [-4.+0.j,  0.+0.j]])",
}
_INVERSE = {
    "call": _FREQUENCIES,
    "result": "array([[1.+0.j, 2.+0.j],\n           [3.+0.j, 4.+0.j]])",
}
_REAL = {"call": _FREQUENCIES, "result": "array([[1., 2.],\n           [3., 4.]])"}

_ALL = """The discrete Fourier transform along several axes, by default all.

    `s` has the numbers of points along the axes, to which `a` is cropped or padded with zeros; -1
    stands for all. An axis that is named again is transformed again. The norm is as in `fft`."""
_HALF = """The transform of real numbers along several axes: `rfft` along the last, then `fft`.

    Other arguments as in `fftn`."""
_RESTORED = """The inverse of `rfftn`: `ifft` along all axes but the last, then `irfft`.

    Other arguments as in `fftn`."""
_INVERSE_ALL = "The inverse discrete Fourier transform along several axes; arguments as in `fftn`."
_PLANE = "The discrete Fourier transform along two axes; arguments as in `fftn`."
_INVERSE_PLANE = "The inverse discrete Fourier transform along two axes; arguments as in `fftn`."
_HALF_PLANE = "The transform of real numbers along two axes; arguments as in `rfftn`."
_RESTORED_PLANE = "The inverse of `rfft2`; arguments as in `irfftn`."
_TWO = {"axes": (-2, -1)}

fftn = _complex("fftn", summary=_ALL, **_FORWARD)
ifftn = _complex("ifftn", summary=_INVERSE_ALL, **_INVERSE)
fft2 = _complex("fft2", summary=_PLANE, defaults=_TWO, **_FORWARD)
ifft2 = _complex("ifft2", summary=_INVERSE_PLANE, defaults=_TWO, **_INVERSE)
rfftn = _halved("rfftn", summary=_HALF, **_FORWARD)
irfftn = _restored("irfftn", summary=_RESTORED, **_REAL)
rfft2 = _halved("rfft2", summary=_HALF_PLANE, defaults=_TWO, **_FORWARD)
irfft2 = _restored("irfft2", summary=_RESTORED_PLANE, defaults=_TWO, **_REAL)
