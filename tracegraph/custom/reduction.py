"""tracegraph.reduction: reductions and scans that users write, by what combines two values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph import errors
from tracegraph.arrays.eager import apply
from tracegraph.custom.texts import Expressions, function_error
from tracegraph.dtypes import type_text
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.ir.derivative import Emitter, NoDerivativeError, Rewrite
from tracegraph.ir.op import Combiner, Op, Reduction, Scan
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.numpy.dispatch import as_array

NDArray = np.ndarray[Any, Any]
Axes = int | Sequence[int] | None


class Fold:
    """A function that combines two arrays, with the methods of a ufunc that fold by it.

    >>> Fold(np.maximum).reduce(np.array([[1, 5, 2], [7, 3, 4]]), 1)
    array([5, 7])
    """

    def __init__(self, combine: Callable[..., Any]) -> None:
        self._combine = combine

    def __call__(self, x: NDArray, y: NDArray, out: NDArray | None = None) -> NDArray:
        """The combination of two arrays."""
        found: NDArray = np.asarray(self._combine(x, y))
        if out is None:
            return found
        out[...] = found
        return out

    def reduce(
        self,
        x: NDArray,
        axis: Axes = 0,
        dtype: Any = None,
        out: NDArray | None = None,
        keepdims: bool = False,
    ) -> NDArray:
        """The fold over axes with elements, in halves: all pairs of a step in one call."""
        axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
        kept = tuple([extent for n, extent in enumerate(x.shape) if n not in axes])
        rest = np.moveaxis(x, axes, range(len(axes))).reshape(-1, *kept)
        while len(rest) > 1:
            half = len(rest) // 2
            odd = rest[2 * half :]
            rest = np.concatenate([self(rest[:half], rest[half : 2 * half]), odd])
        found = np.expand_dims(rest[0], axes) if keepdims else rest[0]
        if out is None:
            return found
        out[...] = found
        return out

    def accumulate(
        self, x: NDArray, axis: int = 0, dtype: Any = None, out: NDArray | None = None
    ) -> NDArray:
        """Every partial fold along an axis."""
        found = np.array(x)
        moved = np.moveaxis(found, axis, 0)
        for n in range(1, len(moved)):
            moved[n] = self(moved[n - 1], moved[n])
        if out is None:
            return found
        out[...] = found
        return out


class ReductionFunction:
    """A reduction that `tracegraph.reduction` made, over any axes.

    `reference` is itself, on NumPy arrays.
    """

    def __init__(
        self, combine: Callable[..., Any], expressions: Expressions, identity: Any
    ) -> None:
        self._expressions = expressions
        name = getattr(combine, "__name__", type(combine).__name__)
        combiner = _combiner(combine, expressions, identity, name)
        self.op = _reduction_op(combiner, expressions.where)
        self.scan_op = _scan_op(combiner, expressions.where)
        self.__name__, self.__doc__ = name, combine.__doc__

    @property
    def reference(self) -> Callable[..., Any]:
        """The reduction of NumPy arrays."""
        return self

    def __call__(self, x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
        """The fold over axes, all by default; of no elements, the identity.

        Raises:
            CustomKernelError: there is no text for the dtype.
            AxisError: an axis is out of range.
        """
        try:
            x = self._cast(x)
            axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
            found = apply(self.op, x, axes=tuple(sorted(axes)))
            if keepdims:
                shape = tuple([1 if n in axes else extent for n, extent in enumerate(x.shape)])
                return found.reshape(shape)
        except BaseException as error:
            hide_frames(error)
            raise
        return found[()] if isinstance(found, np.ndarray) else found

    def accumulate(self, x: Any, axis: int = 0) -> Any:
        """Every partial fold along an axis, of the shape of `x`; raises what a call raises."""
        try:
            x = self._cast(x)
            return apply(self.scan_op, x, axis=normalize_axis_index(axis, x.ndim))
        except BaseException as error:
            hide_frames(error)
            raise

    def _cast(self, x: Any) -> Any:
        array = as_array(x)
        return as_array(array, self._expressions.common_dtype([type_of(array)]))

    def __repr__(self) -> str:
        return f"<reduction {self._expressions.where}>"


@entry_point
def reduction(
    combine: Any, *, cuda: str | Mapping[str, str], identity: Any, header: str = ""
) -> ReductionFunction:
    """A reduction with an operation of your own, which must be associative and commutative.

    ``r(x, axis=None, keepdims=False)`` folds over axes, ``r.accumulate(x, axis=0)`` gives every
    partial result. What computes the elements is fused with it, and `vmap` applies it to lanes. On
    the host, the NumPy function combines halves of the elements until one is left.

    Args:
        combine: a NumPy function of two arrays of one dtype and shape: the definition.
        cuda: a C++ expression of ``{0}`` and ``{1}``, or several by kinds of dtypes, as in
            `elementwise`.
        identity: the number that changes nothing: the fold of no elements. A function of the dtype
            may give it.
        header: as in `elementwise`.

    Raises:
        CustomKernelError: the declaration cannot work.

    >>> import numpy as np
    >>> import tracegraph
    >>> strongest = tracegraph.reduction(
    ...     lambda x, y: np.where(np.abs(x) < np.abs(y), y, x),
    ...     cuda={"if": "abs({0}) < abs({1}) ? {1} : {0}"},
    ...     identity=0,
    ... )
    >>> strongest(np.array([[1, -5, 2], [-3, 2, 1]]), axis=1)
    array([-5, -3])
    """
    if not callable(combine):
        got = errors.value_text(combine)
        raise function_error("reduction", f"takes a function of two NumPy arrays, not {got}")
    where = errors.function_text(combine)
    return ReductionFunction(combine, Expressions.of(cuda, header, 2, where), identity)


def _combiner(
    combine: Callable[..., Any], expressions: Expressions, identity: Any, name: str
) -> Combiner:
    def identity_of(dtype: np.dtype[Any]) -> Any:
        value = identity(dtype) if callable(identity) else identity
        try:
            return np.asarray(value, dtype)[()]
        except (OverflowError, ValueError, TypeError) as error:
            problem = f"its identity {value!r} is no {dtype}: {error}"
            raise function_error(expressions.where, problem) from None

    return Combiner(
        f"custom.{name}", Fold(combine), identity_of, expressions.calls, expressions.definition
    )


def _checked(combiner: Combiner, where: str) -> Callable[[np.dtype[Any]], None]:
    """Refuses a function that does not combine two elements to one of the same dtype."""

    @lru_cache(maxsize=64)
    def check(dtype: np.dtype[Any]) -> None:
        one = np.full(1, combiner.identity(dtype))
        with np.errstate(all="ignore"):
            found = combiner.ufunc(one, one)
        if (found.dtype, found.shape) != (dtype, (1,)):
            got = type_text(found.dtype, found.shape)
            raise errors.KernelResultError(where, [("combination", type_text(dtype, (1,)), got)])

    return check


def _missing(f: Emitter, out: Any, *operands: Any, **attrs: Any) -> NoReturn:
    raise NoDerivativeError("a reduction of the user's has no derivative; use custom_jvp")


def _reduction_op(combiner: Combiner, where: str) -> Op:
    check = _checked(combiner, where)

    def type_rule(x: ArrayType, *, axes: tuple[int, ...]) -> ArrayType:
        check(x.dtype)
        return ArrayType(x.dtype, tuple([e for n, e in enumerate(x.shape) if n not in axes]))

    def reference(x: Any, *, axes: tuple[int, ...]) -> NDArray:
        x = np.asarray(x)
        out = type_rule(ArrayType(x.dtype, x.shape), axes=axes)
        if not x.size:
            return np.full(out.shape, combiner.identity(x.dtype))
        with np.errstate(all="ignore"):
            return np.asarray(combiner.ufunc.reduce(x, axes))

    doc = f"A reduction by {where}, the user's."
    derivative = Rewrite(_missing, _missing)
    return Op(
        f"{combiner.name}_reduce",
        doc,
        type_rule,
        reference,
        Reduction(combiner),
        tuple,
        derivative=derivative,
    )


def _scan_op(combiner: Combiner, where: str) -> Op:
    check = _checked(combiner, where)

    def type_rule(x: ArrayType, *, axis: int) -> ArrayType:
        check(x.dtype)
        return ArrayType(x.dtype, x.shape)

    def reference(x: Any, *, axis: int) -> NDArray:
        x = np.asarray(x)
        type_rule(ArrayType(x.dtype, x.shape), axis=axis)
        with np.errstate(all="ignore"):
            return np.asarray(combiner.ufunc.accumulate(x, axis))

    doc = f"The partial results of a reduction by {where}, the user's."
    derivative = Rewrite(_missing, _missing)
    return Op(
        f"{combiner.name}_accumulate",
        doc,
        type_rule,
        reference,
        Scan(combiner),
        tuple,
        derivative=derivative,
    )
