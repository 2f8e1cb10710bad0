"""What functions of matrices share: operands as LAPACK takes them, transposes, failures."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.numpy.axes import matrix_transpose
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.generated import arange
from tracegraph.numpy.selecting import take_along_axis, tril
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.numpy.ufuncs import conjugate, isfinite
from tracegraph.ops.factorizations.matrices import DTYPES
from tracegraph.tracing.tracer import Tracer


def operands(*values: Any) -> list[Any]:
    """Arrays of one dtype, of those of LAPACK; integers are float64.

    Raises:
        TypeError: there is no such dtype, as for float16.
    """
    arrays = [as_array(x) for x in values]
    kinds = [np.dtype(np.float64) if x.dtype.kind in "biu" else x.dtype for x in arrays]
    for kind in kinds:
        if kind not in DTYPES:
            raise TypeError(f"array type {kind} is unsupported in linalg")
    dtype = np.result_type(*kinds)
    return [as_array(x, dtype) for x in arrays]


def matrices(x: Any) -> Any:
    """An operand with at least two axes.

    Raises:
        LinAlgError: there are fewer.
        TypeError: LAPACK has no such dtype.
    """
    (a,) = operands(x)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(
            f"{a.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    return a


def square(x: Any) -> Any:
    """An operand of square matrices.

    Raises:
        LinAlgError: they are not square, or there are fewer than two axes.
        TypeError: LAPACK has no such dtype.
    """
    a = matrices(x)
    require_square(a)
    return a


def require_square(a: Any) -> None:
    """Require that the last two extents are equal."""
    if a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(
            f"Last 2 dimensions of the array must be square, got shape {a.shape}"
        )


def adjoint(x: Any) -> Any:
    """The matrices transposed and conjugated."""
    turned = matrix_transpose(x)
    return conjugate(turned) if x.dtype.kind == "c" else turned


def from_lower(x: Any) -> Any:
    """The Hermitian matrices with these lower triangles."""
    return tril(x) + adjoint(tril(x, -1))


def columns_at(x: Any, places: Any) -> Any:
    """The columns of matrices, at places of each matrix's own."""
    return take_along_axis(x, places[..., None, :], axis=-1)


def descending(x: Any) -> Any:
    """The places of the elements of vectors in descending order, by comparing each with all."""
    n = x.shape[-1]
    place = arange(n)
    mine, other = x[..., :, None], x[..., None, :]
    is_before = (other > mine) | ((other == mine) & (place < place[:, None]))
    rank = is_before.sum(axis=-1)
    if n == 0:
        return rank
    return (rank[..., None, :] == place[:, None]).argmax(axis=-1)


def with_batch(x: Any, batch: tuple[int, ...]) -> Any:
    """The matrices repeated along the axes of a batch."""
    return x if x.shape[:-2] == batch else broadcast_to(x, (*batch, *x.shape[-2:]))


def require_success(found: Any, given: Any, failure: str) -> Any:
    """What was found, if it is finite where the operand is, as NumPy demands of what runs at once.

    Traced values pass: a program cannot raise for them.

    Raises:
        LinAlgError: some of it is not.
    """
    if not isinstance(found, Tracer) and not isfinite(found).all() and isfinite(given).all():
        raise np.linalg.LinAlgError(failure)
    return found
