"""What factorizations share: types, triangles and transposes, samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter
from tracegraph.ir.types import ArrayType

NDArray = np.ndarray[Any, Any]

DTYPES = tuple(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))
"""The dtypes of LAPACK."""

_INDEX = np.dtype(np.int64)


def check_matrices(op: str, x: ArrayType) -> None:
    """Require a batch of matrices, of a dtype of LAPACK.

    Raises:
        TypeError: another dtype.
        ValueError: fewer than two axes.
    """
    if x.dtype not in DTYPES:
        names = ", ".join(map(str, DTYPES))
        raise TypeError(f"{op}: needs a dtype of {names}, got {x}; cast it")
    if x.ndim < 2:
        raise ValueError(f"{op}: needs matrices in the last two axes, got {x}")


def check_square(op: str, x: ArrayType) -> None:
    """Require a batch of square matrices, of a dtype of LAPACK.

    Raises:
        TypeError: another dtype.
        ValueError: fewer than two axes, or the last two differ.
    """
    check_matrices(op, x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{op}: needs square matrices in the last two axes, got {x}")


def real_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of a complex number, or that of a real one."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


# -- for rules of derivatives ----------------------------------------------------------------------


def swapped(f: Emitter, x: Any) -> Any:
    """The matrices transposed."""
    return f.transpose(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(f: Emitter, x: Any) -> Any:
    """The matrices transposed and conjugated."""
    turned = swapped(f, x)
    return f.conjugate(turned) if x.dtype.kind == "c" else turned


def triangle(f: Emitter, x: Any, *, lower: bool, offset: int = 0) -> Any:
    """The matrices with zeros above, or else below, a diagonal: the one of this offset."""
    rows, columns = x.shape[-2:]
    row = f.reshape(f.iota(size=rows, dtype=_INDEX), shape=(rows, 1))
    distance = f.subtract(f.iota(size=columns, dtype=_INDEX), row)
    compare = f.less_equal if lower else f.greater_equal
    return f.where(compare(distance, np.int64(offset)), x, x.dtype.type(0))


def halved_triangle(f: Emitter, x: Any) -> Any:
    """The lower triangles, with half of the diagonal."""
    half = x.dtype.type(0.5)
    strict = triangle(f, x, lower=True, offset=-1)
    return f.multiply(half, f.add(triangle(f, x, lower=True), strict))


def hermitian(f: Emitter, x: Any) -> Any:
    """The Hermitian matrices with these lower triangles; of the diagonal, the real part."""
    half = halved_triangle(f, x)
    return f.add(half, adjoint(f, half))


def identity(f: Emitter, n: int, dtype: np.dtype[Any]) -> Any:
    """The identity matrix."""
    i = f.iota(size=n, dtype=_INDEX)
    is_diagonal = f.equal(f.reshape(i, shape=(n, 1)), i)
    return f.where(is_diagonal, dtype.type(1), dtype.type(0))


def diagonal(f: Emitter, x: Any) -> Any:
    """The diagonals of square matrices."""
    eye = identity(f, x.shape[-1], x.dtype)
    return f.sum(f.multiply(x, eye), axes=(x.ndim - 1,))


def real_part(f: Emitter, x: Any) -> Any:
    """The real parts of complex numbers."""
    return f.real(x) if x.dtype.kind == "c" else x


def differences_inverted(f: Emitter, x: Any, *, squares: bool = False) -> Any:
    """1 / (xⱼ - xᵢ), or of the squares, in row i and column j, and 0 on the diagonal.

    The difference of squares is a product: it neither cancels nor overflows early.
    """
    n = x.shape[-1]
    row, column = f.reshape(x, shape=(*x.shape[:-1], 1, n)), f.reshape(x, shape=(*x.shape, 1))
    gap = f.subtract(row, column)
    if squares:
        gap = f.multiply(gap, f.add(row, column))
    i = f.iota(size=n, dtype=_INDEX)
    is_diagonal = f.equal(f.reshape(i, shape=(n, 1)), i)
    one, zero = x.dtype.type(1), x.dtype.type(0)
    return f.where(is_diagonal, zero, f.divide(one, f.where(is_diagonal, one, gap)))


def separated(f: Emitter, x: Any, order: int) -> Any:
    """Ascending eigenvalues of each matrix, at least a small distance apart: that of equal ones.

    What no choice of vectors changes is a smooth function of the matrix, while its derivative is a
    quotient of differences. Neighbours are moved apart about their middle by what makes the errors
    of this and of the quotients alike, in derivatives of that order.
    """
    n, dtype = x.shape[-1], x.dtype
    if n < 2:
        return x
    axis, place = x.ndim - 1, f.cast(f.iota(size=n, dtype=_INDEX), dtype=dtype)
    level = f.subtract(x, f.multiply(place, distance(f, x, order)))  # ascends where there is room
    highest = f.maximum_accumulate(level, axis=axis)
    lowest = last_first(f, f.minimum_accumulate(last_first(f, level), axis=axis))
    middle = f.multiply(dtype.type(0.5), f.add(highest, lowest))
    return f.add(x, f.stop_gradient(f.subtract(middle, level)))


def last_first(f: Emitter, x: Any) -> Any:
    """The elements of the last axis from the last one on."""
    starts, steps = [0] * x.ndim, [1] * x.ndim
    starts[-1], steps[-1] = x.shape[-1] - 1, -1
    return f.slice(x, starts=tuple(starts), steps=tuple(steps), sizes=x.shape)


def distance(f: Emitter, x: Any, order: int) -> Any:
    """The distance of equal eigenvalues, or singular values, of matrices, shaped (…, 1)."""
    size = f.max(f.absolute(x), axes=(x.ndim - 1,))
    size = f.where(f.equal(size, x.dtype.type(0)), x.dtype.type(1), size)
    size = f.stop_gradient(f.reshape(size, shape=(*size.shape, 1)))
    return f.multiply(x.dtype.type(2 * np.finfo(x.dtype).eps ** (1 / (order + 1))), size)


def rows_at(f: Emitter, x: Any, rows: Any) -> Any:
    """Rows of each matrix, at the indices of its own."""
    batch = x.shape[:-2]
    places = []
    for axis, extent in enumerate(batch):
        shape = tuple([extent if i == axis else 1 for i in range(rows.ndim)])
        place = f.reshape(f.iota(size=extent, dtype=_INDEX), shape=shape)
        places.append(f.broadcast_to(place, shape=rows.shape))
    return f.gather(x, *places, rows, dims=tuple(range(len(batch) + 1)))


# -- references ------------------------------------------------------------------------------------


def each_matrix(x: NDArray) -> Iterator[tuple[int, ...]]:
    """The index of each matrix of a batch."""
    return np.ndindex(*x.shape[:-2])


def finite_part(x: Any) -> tuple[NDArray, NDArray]:
    """The matrices with zeros in place of those that are not finite, and which are.

    LAPACK's iterations need not end where elements are NaN.
    """
    x = np.asarray(x)
    is_finite = np.isfinite(x).all(axis=(-2, -1))
    return np.where(is_finite[..., None, None], x, x.dtype.type(0)), is_finite


# -- samples ---------------------------------------------------------------------------------------


def mixed(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> NDArray:
    """Matrices of random numbers."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x, dtype)


def well_conditioned(n: int, dtype: Any = np.float64, batch: tuple[int, ...] = ()) -> NDArray:
    """Square matrices of small condition, whose largest elements are not on the diagonal alone."""
    x = mixed((*batch, n, n), dtype, seed=n)
    return np.asarray(x + np.roll(np.eye(n), n // 2, 0) * (2 * n**0.5 + 1), dtype)


def positive_definite(n: int, dtype: Any = np.float64, batch: tuple[int, ...] = ()) -> NDArray:
    """Hermitian positive definite matrices of small condition."""
    x = mixed((*batch, n, n), dtype, seed=n)
    square = x @ np.conj(np.swapaxes(x, -1, -2)) + n * np.eye(n, dtype=dtype)
    return np.asarray(square, dtype)
