"""tracegraph.reduction: reductions and scans that users write, by what combines two values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph import errors
from tracegraph.arrays.eager import apply
from tracegraph.custom.folds import Fold, in_halves, one_by_one
from tracegraph.custom.options import Derivative, checked_derivative
from tracegraph.custom.texts import Expressions, function_error
from tracegraph.dtypes import type_text
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.ir.derivative import Jvp, NoDerivativeError, Reference, UserRule
from tracegraph.ir.op import Combiner, DeclaredOp, Reduction, Scan
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.numpy.dispatching.dispatch import as_array

__all__ = ["reduction"]

NDArray = np.ndarray[Any, Any]
Axes = int | Sequence[int] | None


class ReductionFunction:
    """A reduction that `tracegraph.reduction` made, over any axes.

    `reference` is itself, on NumPy arrays.
    """

    def __init__(
        self,
        combine: Callable[..., Any],
        expressions: Expressions,
        identity: Any,
        derivative: Derivative | None,
    ) -> None:
        self._expressions = expressions
        name = getattr(combine, "__name__", type(combine).__name__)
        combiner = combiner_of(combine, expressions, identity, name)
        check = _checked(combiner, expressions.where)
        self.op = reduction_op(combine, combiner, expressions.where, derivative, check)
        self.scan_op = scan_op(combine, combiner, expressions.where, derivative, check)
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
    combine: Any,
    *,
    cuda: str | Mapping[str, str],
    identity: Any,
    header: str = "",
    derivative: Derivative | None = None,
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
        derivative: ``"reference"``: that of a fold by `combine`, which is traced. A function:
            ``derivative(primals, tangents, axis)`` gets the array and its tangent in a tuple each,
            and the axes that are folded, none of them negative; it returns the tangent of the
            result, without these axes. It is traced, and must be linear in the tangent. With
            either, `accumulate` has the derivative of its recurrence by `combine`.

    Raises:
        CustomKernelError: the declaration cannot work.
        ParametersError: `derivative` is a function of other parameters.

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
    expressions = Expressions.of(cuda, header, 2, where)
    rule = checked_derivative(
        derivative,
        ("primals", "tangents", "axis"),
        f"reduction {where}",
        partial(function_error, where),
    )
    return ReductionFunction(combine, expressions, identity, rule)


def combiner_of(
    combine: Callable[..., Any], expressions: Expressions, identity: Any, name: str
) -> Combiner:
    """The combiner of a user's function."""

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


def _checked(combiner: Combiner, where: str) -> Check:
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


class _Rules:
    """The derivatives of a reduction and of its partial results."""

    def __init__(
        self, combine: Callable[..., Any], label: str, derivative: Derivative | None
    ) -> None:
        self.combine, self.label, self.derivative = combine, label, derivative

    def of_reduction(self, *, axes: tuple[int, ...]) -> Reference | Jvp:
        """What the user gave: a rule for tangents, or the fold itself, in halves."""
        given = self._given()
        if given == "reference":

            def folded(x: Any) -> Sequence[Any]:
                return [in_halves(self.combine, x, axes) if x.size else x.sum(axis=axes)]

            return Reference(self.label, self.combine, folded)
        rule: Callable[..., Any] = given

        def tangent_of(operands: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
            return [rule(tuple(operands), tuple(tangents), axes)]

        return Jvp(self.label, rule, tangent_of)

    def of_scan(self, *, axis: int) -> Reference:
        """The recurrence, step by step."""
        self._given()
        return Reference(self.label, self.combine, lambda x: [one_by_one(self.combine, x, axis)])

    def _given(self) -> Any:
        if self.derivative is None:
            raise NoDerivativeError(
                f'{self.label} was declared without derivative=; give derivative="reference", '
                "which differentiates the NumPy function that combines, or a function "
                "(primals, tangents, axis) -> tangent of the result"
            )
        return self.derivative


Check = Callable[[np.dtype[Any]], None]
"""Refuses dtypes that a function does not combine."""


def reduction_op(
    combine: Callable[..., Any],
    combiner: Combiner,
    where: str,
    derivative: Derivative | None,
    check: Check,
) -> DeclaredOp:
    """The record of folds by a function of the user's. It is not registered."""
    rules = _Rules(combine, f"reduction {where}", derivative)

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
    return DeclaredOp(
        f"{combiner.name}_reduce",
        doc,
        type_rule,
        reference,
        Reduction(combiner),
        tuple,
        derivative=UserRule(rules.of_reduction),
        where=where,
        function=combine,
        rule=derivative,
    )


def scan_op(
    combine: Callable[..., Any],
    combiner: Combiner,
    where: str,
    derivative: Derivative | None,
    check: Check,
) -> DeclaredOp:
    """The record of partial folds by a function of the user's. It is not registered."""
    rules = _Rules(combine, f"reduction {where}", derivative)

    def type_rule(x: ArrayType, *, axis: int) -> ArrayType:
        check(x.dtype)
        return ArrayType(x.dtype, x.shape)

    def reference(x: Any, *, axis: int) -> NDArray:
        x = np.asarray(x)
        type_rule(ArrayType(x.dtype, x.shape), axis=axis)
        with np.errstate(all="ignore"):
            return np.asarray(combiner.ufunc.accumulate(x, axis))

    doc = f"The partial results of a reduction by {where}, the user's."
    return DeclaredOp(
        f"{combiner.name}_accumulate",
        doc,
        type_rule,
        reference,
        Scan(combiner),
        tuple,
        derivative=UserRule(rules.of_scan),
        where=where,
        function=combine,
        rule=derivative,
    )
