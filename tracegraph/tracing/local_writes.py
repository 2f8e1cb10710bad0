"""Writes to arrays that the user's code has made: what tracers and Arrays share.

Each method of ndarray that writes is one assignment. Which arrays may be written to, and what else
changes with them, is what the classes know: see `views`.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from tracegraph import errors
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import broadcast_shapes, result_type, type_of
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.operators import InPlaceOperators, in_place


class LocalWrites(InPlaceOperators):
    """Mixin with ndarray's ways of writing, which all are assignments."""

    __slots__ = ()

    if TYPE_CHECKING:  # what the classes have
        type: property
        dtype: property
        shape: property
        ndim: property
        is_local: property
        at: property

        def __setitem__(self, index: Any, value: Any) -> None: ...

    def check_writable(self, operation: str = "", instead: str = "") -> None:
        """Raise unless the array is one that an operation may write to; `instead` says what to do
        where it is not.
        """
        raise NotImplementedError

    def _store(self, value: Any) -> None:
        """Give all elements the values of an array of this dtype that broadcasts to this shape."""
        raise NotImplementedError

    def assign(self, value: Any, name: str = "assignment") -> None:
        """Write `value`, of this shape or broadcast to it, to all elements: `out=` and `x += y`.

        Raises:
            InPlaceCastError: the dtype of the value does not convert by "same_kind".
            TracerWriteError: a tracer that is read-only.
            ImmutableArrayError: an Array that is read-only.
            ValueError: the value does not broadcast to this shape.
        """
        self.check_writable()
        type_ = type_of(value)
        if result_type(self.type, type_) != self.dtype and not np.can_cast(
            type_.dtype, self.dtype, "same_kind"
        ):
            target: Any = self
            raise errors.InPlaceCastError(name, type_, target)
        if broadcast_shapes(self.shape, type_.shape) != self.shape:
            raise ValueError(
                f"non-broadcastable output operand: a result of shape {type_.shape} does not fit "
                f"in place into shape {self.shape}"
            )
        self._store(FUNCTIONS["astype"](value, self.dtype))

    def _replaced(self, result: Any, name: str, other: Any) -> Any:
        """`x += y` writes to `x`. A 0-d `x` is a scalar, as NumPy's sums are, and is rebound."""
        if self.ndim == 0:
            return result
        if name == "matmul" and result.shape != self.shape:
            raise ValueError(
                f"x @= y of shapes {self.shape} and {np.shape(other)} gives {result.shape}, "
                "which must be the shape of x; write x = x @ y"
            )
        self.assign(result, name)
        return self

    __imatmul__ = in_place("matmul")

    @property
    def real(self) -> Any:
        """The real part, a view; of a real array, the array itself."""
        return FUNCTIONS["real"](self)

    @real.setter
    @entry_point
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary part, a view; of a real array, read-only zeros."""
        return FUNCTIONS["imag"](self)

    @imag.setter
    @entry_point
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @entry_point
    def fill(self, value: Any) -> None:
        """Assign one value to all elements."""
        self.check_writable("x.fill(value)", "write `x = numpy.full_like(x, value)`")
        self[...] = value

    @entry_point
    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Assign values at positions in the ravelled array: `numpy.put`."""
        FUNCTIONS["put"](self, indices, values, mode)

    @entry_point
    def sort(
        self, axis: int = -1, kind: str | None = None, order: Any = None, **options: Any
    ) -> None:
        """Bring the elements into order along an axis: `numpy.sort`."""
        self.check_writable("x.sort()", "write `x = numpy.sort(x, axis)`")
        self[...] = FUNCTIONS["sort"](self, axis, kind, order, **options)

    @entry_point
    def partition(
        self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
    ) -> None:
        """Bring the elements into the order of `numpy.partition`."""
        self.check_writable("x.partition(kth)", "write `x = numpy.partition(x, kth, axis)`")
        self[...] = FUNCTIONS["partition"](self, kth, operator.index(axis), kind, order)
