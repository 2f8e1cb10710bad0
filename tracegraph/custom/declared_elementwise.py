"""tracegraph.elementwise: functions of elements that users write, fused with their surroundings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, update_wrapper
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph import errors
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply
from tracegraph.custom.options import is_reference
from tracegraph.custom.texts import Expressions, function_error
from tracegraph.dtypes import canonical_dtype, type_text
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.ir.derivative import (
    Coefficient,
    Derivative,
    NoDerivativeError,
    Partials,
    Reference,
    UserRule,
)
from tracegraph.ir.op import DeclaredOp, Elementwise, Op
from tracegraph.ir.types import ArrayType, broadcast_shapes, type_of
from tracegraph.numpy.dispatching.dispatch import is_ours
from tracegraph.tracing.foreign import is_foreign

__all__ = ["elementwise"]

NDArray = np.ndarray[Any, Any]


class ElementwiseFunction:
    """A function that `tracegraph.elementwise` made; it broadcasts, as NumPy's functions do.

    `reference` is the NumPy function that defines it.
    """

    def __init__(self, reference: Callable[..., Any], op: Op, count: int, where: str) -> None:
        self.reference = reference
        self.op = op
        self._count = count
        self._where = where
        update_wrapper(self, reference, updated=())

    def __call__(self, *args: Any) -> Any:
        """The values for arrays and numbers.

        Raises:
            CustomKernelError: the arguments are not as many, or there is no text for their dtypes.
            KernelResultError: the reference returned an array of another dtype or shape.
        """
        try:
            if len(args) != self._count:
                raise function_error(self._where, f"takes {self._count} arrays, got {len(args)}")
            given = [asarray(x) if is_foreign(x) else x for x in args]
            if is_ours(given):
                arrays = [np.asarray(x) if isinstance(x, (list, tuple)) else x for x in given]
                return apply(self.op, *arrays)
            return np.asarray(self.op.reference(*given))[()]
        except BaseException as error:
            hide_frames(error)
            raise

    def __repr__(self) -> str:
        return f"<elementwise function {self._where}>"


@entry_point
def elementwise(
    reference: Any,
    *,
    cuda: str | Mapping[str, str],
    header: str = "",
    out: DTypeLike | Callable[[np.dtype[Any]], DTypeLike] | None = None,
    derivative: Any = None,
    cost: int = 8,
) -> ElementwiseFunction:
    """An elementwise function with its own text in CUDA C++.

    It is fused with its surroundings, also in loops and branches, and `vmap` applies it to lanes.
    Operands are cast to their common dtype, as NumPy's ufuncs do. On the host, the reference runs.

    Args:
        reference: a NumPy function of arrays that broadcast: the definition.
        cuda: a C++ expression of ``{0}``, ``{1}``, …, and ``{T}``, the C++ type of the result. A
            single text is for floating point, to which integers are cast; a mapping has texts for
            kinds of dtypes: ``"b"``, ``"i"``, ``"u"``, ``"f"``, ``"c"``, or several, as ``"iu"``.
            float16 and bfloat16 arrive as float. Braces are doubled.
        header: C++ that the text needs: functions marked ``__device__``, in a namespace of their
            own, so that names clash with no others.
        out: the dtype of the result, or a function of the operands' dtype; by default, that of the
            reference for ones.
        derivative: for one operand, a function of the operand; for several, a tuple of functions of
            the operands, the partial derivatives. They are traced. 0, 1 and -1 stand for constant
            ones. ``"reference"``: as the reference is, which is traced for that.
        cost: of an element: 1 for arithmetic, 8 for a transcendental function. It decides what is
            computed again rather than stored.

    Raises:
        CustomKernelError: the declaration cannot work.

    >>> import numpy as np
    >>> import tracegraph
    >>> softplus = tracegraph.elementwise(
    ...     lambda x: np.log1p(np.exp(x)),
    ...     cuda="log1p(exp({0}))",
    ...     derivative=lambda x: 1 / (1 + np.exp(-x)),
    ... )
    >>> softplus(np.array([-1.0, 0.0, 1.0])).round(4)
    array([0.3133, 0.6931, 1.3133])
    >>> float(tracegraph.grad(softplus)(0.0))
    0.5
    """
    if not callable(reference):
        got = errors.value_text(reference)
        raise function_error("elementwise", f"takes a function of NumPy arrays, not {got}")
    where = errors.function_text(reference)
    given: Any = cost
    if not isinstance(given, int) or given < 0:
        got = errors.value_text(given)
        raise function_error(where, f"cost must be an integer of at least 0, not {got}")
    count = _operand_count(reference, where)
    expressions = Expressions.of(cuda, header, count, where)
    op = elementwise_op(reference, expressions, out, derivative, cost, count)
    return ElementwiseFunction(reference, op, count, where)


def _operand_count(reference: Callable[..., Any], where: str) -> int:
    if isinstance(reference, np.ufunc):
        return int(reference.nin)
    given = list(inspect.signature(reference).parameters.values())
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not given or any(each.kind not in plain for each in given):
        raise function_error(
            where, "its reference must have one or more positional parameters, no others"
        )
    return len(given)


def elementwise_op(
    reference: Callable[..., Any],
    expressions: Expressions,
    out: Any,
    derivative: Any,
    cost: int,
    count: int,
) -> DeclaredOp:
    """The record. It is not registered, because another op may have its name.

    Raises:
        CustomKernelError: `derivative` has not a function or a number for each operand.
    """
    where = expressions.where
    rule = _derivative(derivative, reference, count, where)

    @lru_cache(maxsize=256)
    def promote(*types: ArrayType) -> Sequence[np.dtype[Any]]:
        return (expressions.common_dtype(types),) * count

    @lru_cache(maxsize=64)
    def result(dtype: np.dtype[Any]) -> np.dtype[Any]:
        if out is not None:
            declared = out(dtype) if callable(out) and not isinstance(out, type) else out
            return canonical_dtype(declared)
        ones = [np.ones(1, dtype) for _ in range(count)]
        with np.errstate(all="ignore"):
            computed = np.asarray(reference(*ones))
        if computed.shape != (1,):
            row = (
                "result for one element",
                "one element",
                type_text(computed.dtype, computed.shape),
            )
            raise errors.KernelResultError(where, [row])
        return canonical_dtype(computed.dtype)

    def type_rule(*types: ArrayType) -> ArrayType:
        (dtype,) = {type_.dtype for type_ in types}
        return ArrayType(result(dtype), broadcast_shapes(*[type_.shape for type_ in types]))

    def values(*operands: Any) -> NDArray:
        types = [type_of(np.asarray(x) if isinstance(x, (list, tuple)) else x) for x in operands]
        dtype = expressions.common_dtype(types)
        arrays = [np.asarray(x).astype(dtype, copy=False) for x in operands]
        computed = np.asarray(reference(*[_read_only(array) for array in arrays]))
        wanted = (result(dtype), np.broadcast_shapes(*[array.shape for array in arrays]))
        if (computed.dtype, computed.shape) != wanted:
            row = ("result", type_text(*wanted), type_text(computed.dtype, computed.shape))
            raise errors.KernelResultError(where, [row])
        return computed

    name = f"custom.{getattr(reference, '__name__', type(reference).__name__)}"
    return DeclaredOp(
        name,
        f"{where}, an elementwise function of the user's.",
        type_rule,
        values,
        Elementwise(expressions.calls, cost, expressions.definition),
        tuple,
        promote,
        rule,
        where=where,
        function=reference,
        rule=derivative,
    )


def _read_only(array: NDArray) -> NDArray:
    view = array.view()
    view.flags.writeable = False
    return view


def _derivative(declared: Any, reference: Callable[..., Any], count: int, where: str) -> Derivative:
    if declared is None or is_reference(declared):

        def choose() -> Reference:
            if declared is None:
                raise NoDerivativeError(
                    f"{where} was declared without derivative=; give "
                    'derivative="reference", which differentiates its NumPy reference, or a '
                    "function for each operand, the partial derivatives"
                )
            return Reference(f"function {where}", reference, lambda *xs: [reference(*xs)])

        return UserRule(choose)
    partials = declared if isinstance(declared, tuple) else (declared,)
    wrong = [d for d in partials if not callable(d) and not _is_constant(d)]
    if len(partials) != count or wrong:
        raise function_error(
            where,
            f'derivative must be "reference", or a function, 0, 1 or -1 for each of {count} '
            f"operands, not {errors.value_text(wrong[0]) if wrong else f'{len(partials)} of them'}",
        )
    return Partials(*map(_coefficient, partials))


def _is_constant(given: Any) -> bool:
    """Whether a partial derivative is a number that `Partials` takes. True would be a mistake."""
    is_number = isinstance(given, (int, float, np.number)) and not isinstance(given, bool)
    return bool(is_number and given in (-1, 0, 1))


def _coefficient(given: Any) -> Coefficient:
    """A partial derivative as the record has it."""
    if not callable(given):
        return int(given)
    return lambda f, out, *operands: given(*operands)
