"""Transforms along axes, one after the other, as few ops over the last axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.dtypes import bfloat16, is_half
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType, result_type
from tracegraph.numpy.dispatching.dispatch import as_array, laid_out
from tracegraph.numpy.ufuncs import multiply
from tracegraph.ops.fourier import MOST_AXES
from tracegraph.tracing.layouts import copy_order

_SWAPPED = {"backward": "forward", None: "forward", "ortho": "ortho", "forward": "backward"}

_Ints = Sequence[int]


def swapped(norm: str | None) -> str:
    """The norm of a transform by which the opposite one has the factor of this one.

    Raises:
        ValueError: there is no such norm.
    """
    try:
        return _SWAPPED[norm]
    except KeyError:
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        ) from None


class Step(NamedTuple):
    """A transform along one axis, of `n` points."""

    n: int
    axis: int


def step(x: Any, n: int | None, axis: int, *, halved: bool = False) -> Step:
    """A transform of `n` points: by default, of all; `halved` if it is of half of the frequencies.

    Raises:
        AxisError, IndexError: the axis is out of range.
        ValueError: there are no points.
    """
    if n is None:
        n = 2 * (x.shape[axis] - 1) if halved else x.shape[axis]
    n = index(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return Step(n, normalize_axis_index(axis, x.ndim))


def operand(x: Any) -> Any:
    """The operand of a transform, of floating point or complex numbers."""
    x = as_array(x)
    if x.dtype.kind in "biu":
        return as_array(x, np.float64)
    return x


def real_operand(x: Any, name: str) -> Any:
    """The operand of a transform of real numbers.

    Raises:
        TypeError: it is complex.
    """
    x = operand(x)
    if x.dtype.kind == "c":
        raise TypeError(f"numpy.fft.{name} needs real numbers, got {x.dtype}; take x.real")
    return x


def complex_to_complex(x: Any, steps: Sequence[Step], inverse: bool, norm: str | None) -> Any:
    """Transforms in the order of the steps. An axis may come up again."""
    factor = _Factor(x.dtype, inverse, norm)
    x = as_array(x, _common(x, np.complex64))
    for group in _groups(steps):
        for n, axis in group:
            x = resized(x, n, axis)
        x = _over([axis for _, axis in group], x, _FFT, rank=len(group), inverse=inverse)
    return factor.applied(x, [n for n, _ in steps])


def real_to_complex(x: Any, steps: Sequence[Step], norm: str | None) -> Any:
    """A transform of real numbers along the axis of the first step, and others of its result."""
    factor = _Factor(x.dtype, False, norm)
    x = as_array(x, _common(x, np.float32))
    first = next(_groups(steps))
    for n, axis in first:
        x = resized(x, n, axis)
    others = sorted(axis for _, axis in first[1:])
    x = _over([*others, first[0].axis], x, _RFFT, rank=len(first))
    x = complex_to_complex(x, steps[len(first) :], False, "backward")
    return factor.applied(x, [n for n, _ in steps])


def complex_to_real(x: Any, step: Step, norm: str | None) -> Any:
    """The real numbers, `n` of them along the axis, whose transform has these frequencies."""
    n, axis = step
    dtype = x.dtype
    factor = _Factor(dtype, True, norm)
    x = as_array(x, _common(x, np.complex64))
    x = _over([axis], resized(x, n // 2 + 1, axis), _IRFFT, size=n)
    x = factor.applied(x, [n])
    return as_array(x, dtype) if is_half(dtype) else x


def _common(x: Any, dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype in which an operand is transformed, which has 32 bits at least."""
    return result_type(ArrayType(x.dtype), ArrayType(np.dtype(dtype)))


def resized(x: Any, n: int, axis: int) -> Any:
    """Cropped, or padded with zeros behind, to `n` elements along the axis."""
    extent = x.shape[axis]
    if n == extent:
        return x
    if n < extent:
        return x[(slice(None),) * axis + (slice(n),)]
    zeros = (0,) * x.ndim
    high = tuple([n - extent if k == axis else 0 for k in range(x.ndim)])
    return apply(get("pad"), x, x.dtype.type(0), low=zeros, high=high)


class _Factor:
    """What results are multiplied by, in the real dtype that NumPy computes it in: for the first
    axis, that of the operand; then, that of its result.
    """

    def __init__(self, dtype: np.dtype[Any], inverse: bool, norm: str | None) -> None:
        other = swapped(norm)
        self._power = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}[
            other if inverse else swapped(other)
        ]
        self._dtype = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        if dtype == bfloat16:  # whose factors NumPy's float32 hold
            self._dtype = np.dtype(np.float32)

    def applied(self, x: Any, sizes: _Ints) -> Any:
        """The result multiplied."""
        if not self._power or prod(sizes) == 1:
            return x
        dtype = np.dtype(f"f{x.dtype.itemsize // 2}") if x.dtype.kind == "c" else x.dtype
        factor = dtype.type(1)
        for k, n in enumerate(sizes):
            factor *= dtype.type(self._of_axis(n, dtype if k else self._dtype))
        return multiply(x, x.dtype.type(factor))

    def _of_axis(self, n: int, dtype: np.dtype[Any]) -> Any:
        if self._power == 1:
            return np.reciprocal(n, dtype=dtype)
        return np.reciprocal(np.sqrt(n, dtype=dtype))


_FFT, _RFFT, _IRFFT = (get(name) for name in ("fft", "rfft", "irfft"))


def _groups(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Consecutive steps along distinct axes, as many as one op takes."""
    group: list[Step] = []
    for each in steps:
        if len(group) == MOST_AXES or any(each.axis == known.axis for known in group):
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _over(axes: _Ints, x: Any, op: Any, **attrs: Any) -> Any:
    """The op, which transforms the last axes, over others. Views take them there and back."""
    if op is _FFT:
        axes = sorted(axes)
    order = [axis for axis in range(x.ndim) if axis not in axes] + [*axes]
    found = apply(op, _transposed(x, order), **attrs)
    found = _transposed(found, np.argsort(order).tolist())
    return laid_out(found, copy_order(x, "K"))


def _transposed(x: Any, order: _Ints) -> Any:
    if [*order] == [*range(x.ndim)]:
        return x
    return apply(get("transpose"), x, axes=tuple(order))
