"""Fourier transforms as products with matrices of roots of unity, where no library has them.

A transform of a * b points is one of a, products with roots, and one of b (Cooley and Tukey, "An
algorithm for the machine calculation of complex Fourier series", 1965). One of many points without
small factors is a convolution, by transforms of a power of two (Bluestein, "A linear filtering
approach to the computation of discrete Fourier transform", 1970). Axes are transformed one after
the other.
"""

from __future__ import annotations

from math import isqrt, pi
from typing import Any

import numpy as np

from lowering.algorithms.parts import numbers, scaled
from tracegraph import numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get

FACTOR = 32
"""Points of the transforms that others are made of, at most. Estimated, not measured."""

SUMMED = 1024
"""Points without small factors that are summed at once, at most: their matrix has as many rows."""


def fft(x: Any, *, rank: int, inverse: bool) -> Any:
    """The transform of complex numbers over the last axes."""
    for axis in range(-rank, 0):
        x = _along(x, axis, inverse)
    return x


def rfft(x: Any, *, rank: int) -> Any:
    """The transform of real numbers, half of the frequencies of the last axis."""
    half = x.shape[-1] // 2 + 1
    found = _along(_complex(x, tnp.zeros(x.shape, x.dtype)), -1, False)[..., :half]
    for axis in range(-rank, -1):
        found = _along(found, axis, False)
    return found


def irfft(x: Any, *, size: int) -> Any:
    """The real numbers whose transform has these frequencies."""
    k = numbers(x.shape[-1])
    own = 2 * k % size == 0  # 0, and size / 2: real
    x = _complex(x.real, tnp.where(own, 0, x.imag))
    others = tnp.conj(x[..., 1 : size - size // 2])
    return _along(tnp.concatenate([x, others[..., ::-1]], axis=-1), -1, True).real


def _along(x: Any, axis: int, inverse: bool) -> Any:
    if axis == -1:
        return _transformed(x, inverse)
    return tnp.swapaxes(_transformed(tnp.swapaxes(x, axis, -1), inverse), axis, -1)


def _transformed(x: Any, inverse: bool) -> Any:
    """The transform over the last axis."""
    *batch, n = x.shape
    factors = [a for a in range(2, min(FACTOR, isqrt(n)) + 1) if n % a == 0]
    if n <= FACTOR or (not factors and n <= SUMMED):
        j = numbers(n)
        return x @ _roots(j[:, None] * j, n, inverse, x)
    if not factors:
        return _by_convolution(x, inverse)
    a = factors[-1]
    b = n // a
    k = numbers(a)
    rows = _roots(k[:, None] * k, a, inverse, x) @ x.reshape(*batch, a, b)
    rows = rows * _roots(k[:, None] * numbers(b), n, inverse, x)
    return tnp.swapaxes(_transformed(rows, inverse), -1, -2).reshape(*batch, n)


def _by_convolution(x: Any, inverse: bool) -> Any:
    """By exponents j k = (j² + k² - (k - j)²) / 2: the last part is a convolution."""
    *batch, n = x.shape
    m = 1 << (2 * n - 2).bit_length()
    j, i = numbers(n), numbers(m)
    chirp = _roots(j * j, 2 * n, inverse, x)
    distance = tnp.minimum(i, m - i)
    filter_ = tnp.where(distance < n, _roots(distance * distance, 2 * n, not inverse, x), 0)
    padded = tnp.pad(x * chirp, [(0, 0)] * len(batch) + [(0, m - n)])
    product = _transformed(padded, False) * _transformed(filter_, False)
    found = _transformed(product, True)[..., :n]
    return scaled(found, tnp.full((), m, found.real.dtype)) * chirp


def _roots(exponents: Any, n: int, inverse: bool, like: Any) -> Any:
    """Powers of the n-th root of unity, rounded from float64 to the dtype of an array."""
    angle = (exponents % n).astype(np.float64) * (2 * pi / n)
    part = like.real.dtype
    sine = tnp.sin(angle).astype(part)
    return _complex(tnp.cos(angle).astype(part), sine if inverse else -sine)


def _complex(real: Any, imaginary: Any) -> Any:
    return apply(get("complex"), real, imaginary)
