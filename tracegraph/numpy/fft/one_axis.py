"""Transforms along one axis."""

from __future__ import annotations

from typing import Any

from tracegraph.numpy.dispatching.dispatch import numpy_function
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.fft.plans import (
    complex_to_complex,
    complex_to_real,
    operand,
    real_operand,
    real_to_complex,
    step,
    swapped,
)
from tracegraph.numpy.ufuncs import conjugate

__all__ = ["fft", "hfft", "ifft", "ihfft", "irfft", "rfft"]


@numpy_function
def fft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The discrete Fourier transform along an axis, cropped or padded with zeros to `n` points.

    The norm, "backward", "ortho" or "forward", says which direction has a factor: none here by
    default, and 1 / n in `ifft`.

    Shape: that of `a`, with `n` along the axis.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: the axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: `n` is less than 1, or there is no such norm.

    >>> tnp.fft.fft([1.0, 0.0, -1.0, 0.0])
    array([0.+0.j, 2.+0.j, 0.+0.j, 2.+0.j])
    """
    a = operand(a)
    found = complex_to_complex(a, [step(a, n, axis)], False, norm)
    return stored("fft.fft", found, out)


@numpy_function
def ifft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse discrete Fourier transform along an axis; arguments as in `fft`.

    Shape: that of `a`, with `n` along the axis.
    Dtype: complex64 for float16, float32 and complex64; else complex128.

    Raises:
        IndexError: the axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: `n` is less than 1, or there is no such norm.

    >>> tnp.fft.ifft([0.0, 4.0, 0.0, 4.0])
    array([ 2.+0.j,  0.+0.j, -2.+0.j,  0.+0.j])
    """
    a = operand(a)
    found = complex_to_complex(a, [step(a, n, axis)], True, norm)
    return stored("fft.ifft", found, out)


@numpy_function
def rfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The transform of real numbers along an axis: of its frequencies, those that are not negative.

    Other arguments as in `fft`.

    Shape: that of `a`, with n // 2 + 1 along the axis.
    Dtype: complex64 for float16 and float32; else complex128.

    Raises:
        IndexError: the axis is out of range.
        TypeError: the numbers are complex, or a dtype that NumPy does not transform.
        ValueError: `n` is less than 1, or there is no such norm.

    >>> tnp.fft.rfft([1.0, 0.0, -1.0, 0.0])
    array([0.+0.j, 2.+0.j, 0.+0.j])
    """
    a = real_operand(a, "rfft")
    found = real_to_complex(a, [step(a, n, axis)], norm)
    return stored("fft.rfft", found, out)


@numpy_function
def irfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `rfft`: `n` real numbers along the axis, by default an even number of them.

    Imaginary parts at frequency 0, and at n / 2, are left out. Other arguments as in `fft`.

    Shape: that of `a`, with `n` along the axis, by default 2 (m - 1) of m elements.
    Dtype: float32 for float32 and complex64, float16 for float16; else float64.

    Raises:
        IndexError: the axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: `n` is less than 1, or there is no such norm.

    >>> tnp.fft.irfft([0.0, 4.0, 0.0])
    array([ 2.,  0., -2.,  0.])
    """
    a = operand(a)
    found = complex_to_real(a, step(a, n, axis, halved=True), norm)
    return stored("fft.irfft", found, out)


@numpy_function
def hfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The real transform, of `n` points, of a signal that is the conjugate of its reverse.

    `a` has its first half. Other arguments as in `fft`.

    Shape: that of `a`, with `n` along the axis, by default 2 (m - 1) of m elements.
    Dtype: float32 for float32 and complex64, float16 for float16; else float64.

    Raises:
        IndexError: the axis is out of range.
        TypeError: a dtype that NumPy does not transform, as bfloat16.
        ValueError: `n` is less than 1, or there is no such norm.

    >>> tnp.fft.hfft([1.0, 2.0, 1.0])
    array([ 6.,  0., -2.,  0.])
    """
    a = operand(a)
    found = complex_to_real(conjugate(a), step(a, n, axis, halved=True), swapped(norm))
    return stored("fft.hfft", found, out)


@numpy_function
def ihfft(
    a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: Any = None
) -> Any:
    """The inverse of `hfft`: the first half of the signal whose transform is real.

    Other arguments as in `fft`.

    Shape: that of `a`, with n // 2 + 1 along the axis.
    Dtype: complex64 for float16 and float32; else complex128.

    Raises:
        IndexError: the axis is out of range.
        TypeError: the numbers are complex, or a dtype that NumPy does not transform.
        ValueError: `n` is less than 1, or there is no such norm.

    >>> tnp.fft.ihfft([6.0, 0.0, -2.0, 0.0])
    array([1.-0.j, 2.-0.j, 1.-0.j])
    """
    a = real_operand(a, "ihfft")
    found = conjugate(real_to_complex(a, [step(a, n, axis)], swapped(norm)))
    return stored("fft.ihfft", found, out)
