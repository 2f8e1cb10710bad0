"""A sparse matrix by the elements of its rows: CSR, compressed sparse rows.

Its products are a gather, a multiplication, and a sum by segment.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.errors import ShapeDependentError
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.sparse.segments import segment_sum
from tracegraph.tracing.tracer import Tracer
from tracegraph.tree import register_dataclass

__all__ = ["CSR"]


@register_dataclass
@dataclass(frozen=True, eq=False)
class CSR:
    """A matrix whose row `i` has the elements `data[indptr[i]:indptr[i + 1]]`.

    They are in the columns `indices[indptr[i]:indptr[i + 1]]`, in any order; elements of the same
    place are added. What `data` has from `indptr[-1]` on does not count. A CSR is a pytree: it may
    be an argument, a result or a carry of traced functions. `a @ x` and `x @ a` are differentiable
    in `data` and in `x`.

    Args:
        data: the elements, a vector.
        indices: the column of each.
        indptr: where each row begins in both, and the end of the last row.
        shape: of the matrix, two static integers.

    Raises:
        TypeError: `indices` or `indptr` are no integers.
        ValueError: the lengths do not fit, or known indices are out of range.

    >>> a = tracegraph.sparse.CSR([1.0, 2.0], [1, 0], [0, 1, 2], (2, 2))
    >>> a.todense()
    array([[0., 1.],
           [2., 0.]])
    """

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int] = field(metadata={"static": True})

    __array_ufunc__ = None
    """So that `x @ a` of a NumPy array asks this class."""

    def __post_init__(self) -> None:
        """Check what is known."""
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        for name in ("data", "indices", "indptr"):
            object.__setattr__(self, name, as_array(getattr(self, name)))
        count = self.shape[0] + 1
        for name in ("indices", "indptr"):
            dtype = getattr(self, name).dtype
            if dtype.kind not in "iu":
                raise TypeError(f"{name} of a CSR must be integers, got {dtype}")
        if self.data.ndim != 1 or self.indices.shape != self.data.shape:
            raise ValueError(
                "a CSR needs a vector of data and a column for each element, got shapes "
                f"{self.data.shape} and {self.indices.shape}"
            )
        if self.indptr.shape != (count,):
            raise ValueError(
                f"indptr of a CSR of shape {self.shape} must have the shape ({count},), got "
                f"{self.indptr.shape}"
            )
        _require_inside("indices", self.indices, self.shape[1])
        _require_inside("indptr", self.indptr, self.data.shape[0] + 1)

    @staticmethod
    def from_dense(a: Any, nnz: int | None = None) -> CSR:
        """The elements of a matrix that are not 0.

        Args:
            a: a matrix.
            nnz: how many elements to keep room for. Of a traced matrix it must be given; elements
                beyond are dropped.

        Raises:
            ShapeDependentError: `a` is traced, and `nnz` is not given.
            ValueError: `a` is not a matrix.

        >>> tracegraph.sparse.CSR.from_dense(np.array([[0, 5], [0, 0]])).nnz
        1
        """
        a = lifted(as_array(a))
        if a.ndim != 2:
            raise ValueError(f"a CSR is made of a matrix, got shape {a.shape}")
        if nnz is None and isinstance(a, Tracer):
            raise ShapeDependentError(a, "CSR.from_dense", "CSR.from_dense(a, nnz=n)")
        if nnz is None:
            nnz = int(np.count_nonzero(np.asarray(a)))
        if a.size == 0:
            nnz = 0
        flat, width = tnp.ravel(a), max(a.shape[1], 1)
        places = tnp.flatnonzero(flat, size=nnz, fill_value=a.size)
        found = flat[tnp.minimum(places, max(a.size - 1, 0))]
        data = tnp.where(places < a.size, found, a.dtype.type(0))
        return _sorted(data, places // width, places % width, a.shape)

    @staticmethod
    def from_coo(data: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> CSR:
        """A matrix of elements with a row and a column each, in any order.

        Elements of the same place are added; those of rows out of range, if traced, are dropped.

        Raises:
            ValueError: the lengths differ, or known indices are out of range.

        >>> tracegraph.sparse.CSR.from_coo([1, 2, 3], [1, 0, 1], [0, 1, 0], (2, 2)).todense()
        array([[0, 2],
               [4, 0]])
        """
        data, rows, columns = (lifted(as_array(x)) for x in (data, rows, columns))
        if not data.shape == rows.shape == columns.shape or data.ndim != 1:
            raise ValueError(
                "data, rows and columns must be vectors of one length, got shapes "
                f"{data.shape}, {rows.shape} and {columns.shape}"
            )
        count, width = _checked_shape(shape)
        _require_inside("rows", rows, count)
        _require_inside("columns", columns, width)
        rows = as_array(rows, np.int64)
        rows = tnp.where((rows < 0) | (rows > count), np.int64(count), rows)
        order = tnp.argsort(rows, stable=True)
        return _sorted(data[order], rows[order], columns[order], (count, width))

    @staticmethod
    def from_scipy(matrix: Any) -> CSR:
        """The sparse array or matrix of SciPy, of any format.

        Raises:
            TypeError: it is not such an array.
        """
        if not hasattr(matrix, "tocsr"):
            raise TypeError(
                f"from_scipy takes a sparse array of SciPy, got {type(matrix).__name__}; "
                "for a dense one, use from_dense"
            )
        rows = matrix.tocsr()
        return CSR(rows.data, rows.indices, rows.indptr, _checked_shape(rows.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the elements."""
        dtype: np.dtype[Any] = self.data.dtype
        return dtype

    @property
    def nnz(self) -> int:
        """How many elements there is room for."""
        count: int = self.data.shape[0]
        return count

    @property
    def T(self) -> CSR:  # noqa: N802 - NumPy's name
        """The transposed matrix. Its elements are sorted by column."""
        columns = as_array(self.indices, np.int64)
        # what does not count has no row, and must have no row of the transposed matrix either
        columns = tnp.where(self.rows() < self.shape[0], columns, np.int64(self.shape[1]))
        order = tnp.argsort(columns, stable=True)
        inside = tnp.minimum(self.rows(), max(self.shape[0] - 1, 0))
        return _sorted(
            lifted(self.data)[order], columns[order], inside[order], (self.shape[1], self.shape[0])
        )

    def rows(self) -> Any:
        """The row of each element; the number of rows for what does not count."""
        places = tnp.arange(self.nnz)
        return tnp.searchsorted(as_array(self.indptr, np.int64), places, side="right") - 1

    def todense(self) -> Any:
        """The matrix as an array.

        >>> tracegraph.sparse.CSR.from_coo([2.0], [0], [1], (1, 2)).todense()
        array([[0., 2.]])
        """
        result = tnp.zeros(self.shape, self.dtype)
        places = lifted(self.rows()), lifted(as_array(self.indices, np.int64))
        attrs = {"dims": (0, 1), "starts": (), "steps": ()}
        return apply(get("scatter_add"), lifted(result), lifted(self.data), *places, **attrs)

    def __matmul__(self, x: Any) -> Any:
        """The product with a vector or a matrix on the right."""
        x = lifted(as_array(x))
        _require_extent("a @ x", x, 0, self.shape[1])
        return segment_sum(_scaled(self.data, x[self.indices]), self.rows(), self.shape[0])

    def __rmatmul__(self, x: Any) -> Any:
        """The product with a vector or a matrix on the left."""
        x = lifted(as_array(x))
        _require_extent("x @ a", x, x.ndim - 1, self.shape[0])
        rows = self.rows()
        inside = tnp.minimum(rows, max(self.shape[0] - 1, 0))
        # elements that do not count are in no row, and so must be in no column
        columns = tnp.where(rows < self.shape[0], as_array(self.indices, np.int64), np.int64(-1))
        return segment_sum(_scaled(self.data, x.T[inside]), columns, self.shape[1]).T


def _scaled(data: Any, x: Any) -> Any:
    """The rows of x times an element each."""
    return lifted(data) * x if x.ndim == 1 else lifted(data)[:, None] * x


def _sorted(data: Any, rows: Any, columns: Any, shape: tuple[int, ...]) -> CSR:
    """Elements that are sorted by row; of the row `shape[0]`, those that do not count."""
    indptr = tnp.searchsorted(rows, tnp.arange(shape[0] + 1))
    return CSR(data, columns, indptr, (shape[0], shape[1]))


def _checked_shape(shape: Any) -> tuple[int, int]:
    """The shape of a matrix.

    Raises:
        ValueError: it is not one.
    """
    extents = tuple(shape)
    if len(extents) != 2 or not all(isinstance(n, (int, np.integer)) and n >= 0 for n in extents):
        raise ValueError(f"the shape of a CSR is two static integers from 0, got {shape!r}")
    return int(extents[0]), int(extents[1])


def _require_inside(name: str, values: Any, count: int) -> None:
    """Require known indices from 0 to count - 1.

    Raises:
        ValueError: one is out of range.
    """
    if isinstance(values, Tracer) or values.size == 0:
        return
    known = np.asarray(values)
    if known.min() < 0 or known.max() >= count:
        wrong = known[(known < 0) | (known >= count)][0]
        raise ValueError(f"{name} of a CSR must be from 0 to {count - 1}, got {wrong}")


def _require_extent(product: str, x: Any, axis: int, count: int) -> None:
    """Require a vector or a matrix that fits.

    Raises:
        ValueError: it does not.
    """
    if x.ndim not in (1, 2) or x.shape[axis] != count:
        raise ValueError(
            f"{product} of a CSR needs a vector or a matrix with {count} elements along axis "
            f"{axis}, got shape {x.shape}"
        )
