"""Transforms along several axes, the last one first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
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
_LAST_TWO = (-2, -1)


@numpy_function
def fftn(
    a: Any, s: _Ints = None, axes: _Ints = None, norm: str | None = None, out: Any = None
) -> Any:
    """The discrete Fourier transform along several axes, by default all.

    `s` has the numbers of points along the axes, to which `a` is cropped or padded with zeros; -1
    stands for all. An axis that is named again is transformed again. The norm is as in `fft`.

    Shape: that of `a`, with `s` along the axes.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: an axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.fftn([[1.0, 2.0], [3.0, 4.0]])
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    return stored("fft.fftn", _complex(a, s, axes, False, norm), out)


@numpy_function
def ifftn(
    a: Any, s: _Ints = None, axes: _Ints = None, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse discrete Fourier transform along several axes; arguments as in `fftn`.

    Shape: that of `a`, with `s` along the axes.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: an axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]])
    array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]])
    """
    return stored("fft.ifftn", _complex(a, s, axes, True, norm), out)


@numpy_function
def fft2(
    a: Any, s: _Ints = None, axes: _Ints = _LAST_TWO, norm: str | None = None, out: Any = None
) -> Any:
    """The discrete Fourier transform along two axes; arguments as in `fftn`.

    Shape: that of `a`, with `s` along the axes.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: an axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.fft2([[1.0, 2.0], [3.0, 4.0]])
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    return stored("fft.fft2", _complex(a, s, axes, False, norm), out)


@numpy_function
def ifft2(
    a: Any, s: _Ints = None, axes: _Ints = _LAST_TWO, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse discrete Fourier transform along two axes; arguments as in `fftn`.

    Shape: that of `a`, with `s` along the axes.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: an axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]])
    array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]])
    """
    return stored("fft.ifft2", _complex(a, s, axes, True, norm), out)


@numpy_function
def rfftn(
    a: Any, s: _Ints = None, axes: _Ints = None, norm: str | None = None, out: Any = None
) -> Any:
    """The transform of real numbers along several axes: `rfft` along the last, then `fft`.

    Other arguments as in `fftn`.

    Shape: that of `a`, with `s` along the axes, and n // 2 + 1 along the last of them.
    Dtype: complex64 for float16 and float32; else complex128.

    Raises:
        IndexError: an axis is out of range, or there is none.
        TypeError: the numbers are complex, or a dtype that NumPy does not transform.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.rfftn([[1.0, 2.0], [3.0, 4.0]])
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    return stored("fft.rfftn", _halved("rfftn", a, s, axes, norm), out)


@numpy_function
def irfftn(
    a: Any, s: _Ints = None, axes: _Ints = None, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `rfftn`: `ifft` along all axes but the last, then `irfft`.

    Other arguments as in `fftn`.

    Shape: that of `a`, with `s` along the axes, by default 2 (m - 1) of m elements along the last
    of them.
    Dtype: float32 for float32 and complex64; else float64.

    Raises:
        IndexError: an axis is out of range, or there is none.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.irfftn([[10.0, -2.0], [-4.0, 0.0]])
    array([[1., 2.],
           [3., 4.]])
    """
    return stored("fft.irfftn", _restored("irfftn", a, s, axes, norm), out)


@numpy_function
def rfft2(
    a: Any, s: _Ints = None, axes: _Ints = _LAST_TWO, norm: str | None = None, out: Any = None
) -> Any:
    """The transform of real numbers along two axes; arguments as in `rfftn`.

    Shape: that of `a`, with `s` along the axes, and n // 2 + 1 along the last of them.
    Dtype: complex64 for float16 and float32; else complex128.

    Raises:
        IndexError: an axis is out of range, or there is none.
        TypeError: the numbers are complex, or a dtype that NumPy does not transform.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.rfft2([[1.0, 2.0], [3.0, 4.0]])
    array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]])
    """
    return stored("fft.rfft2", _halved("rfft2", a, s, axes, norm), out)


@numpy_function
def irfft2(
    a: Any, s: _Ints = None, axes: _Ints = _LAST_TWO, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `rfft2`; arguments as in `irfftn`.

    Shape: that of `a`, with `s` along the axes, by default 2 (m - 1) of m elements along the last
    of them.
    Dtype: float32 for float32 and complex64; else float64.

    Raises:
        IndexError: an axis is out of range, or there is none.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: a number of points is less than 1, `s` does not fit the axes, or there is no
            such norm.

    >>> tnp.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])
    array([[1., 2.],
           [3., 4.]])
    """
    return stored("fft.irfft2", _restored("irfft2", a, s, axes, norm), out)


def _complex(a: Any, s: _Ints, axes: _Ints, inverse: bool, norm: str | None) -> Any:
    a = as_array(a)
    steps = _steps(a, s, axes)[::-1]
    return complex_to_complex(operand(a), steps, inverse, norm) if steps else a


def _halved(name: str, a: Any, s: _Ints, axes: _Ints, norm: str | None) -> Any:
    a = real_operand(a, name)
    return real_to_complex(a, _some(name, _steps(a, s, axes))[::-1], norm)


def _restored(name: str, a: Any, s: _Ints, axes: _Ints, norm: str | None) -> Any:
    a = operand(a)
    *others, last = _some(name, _steps(a, s, axes, halved=True))
    if others:
        a = complex_to_complex(a, others, True, norm)
    return complex_to_real(a, last, norm)


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
