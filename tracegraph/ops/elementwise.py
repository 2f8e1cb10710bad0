"""Elementwise ops defined by NumPy ufuncs, which give dtypes, promotion and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, wraps
from typing import Any

import numpy as np

from tracegraph.dtypes import SHORT_NAMES
from tracegraph.ir.derivative import Derivative
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ir.types import ArrayType, broadcast_shapes, mixes_signs, promotion_tokens, type_of
from tracegraph.ops.tricky import NDArray, grid, tricky

Select = Callable[[np.dtype[Any], NDArray], tuple[NDArray, ...]]
"""Chooses an op's sample operands from the edge cases of a dtype."""

_REMEMBERED = 256
"""Combinations of operand types in an op's cache of promotions; programs use few."""


def ufunc_op(
    ufunc: np.ufunc,
    doc: str,
    c: Mapping[str, str],
    *,
    name: str | None = None,
    reference: Callable[..., Any] | None = None,
    cost: int = 1,
    python: bool = False,
    promote: Callable[..., Sequence[np.dtype[Any]]] | None = None,
    operands: Select | None = None,
    more: Callable[[], Sequence[Sample]] = tuple,
    derivative: Derivative | None = None,
) -> Op:
    """Register the op that a ufunc defines: its name, promotion, result dtype and values.

    An op that is not a ufunc has a `name` and a `reference` of its own, and the dtypes of the
    ufunc.

    Args:
        ufunc: the definition.
        doc: one line.
        c: C++ text by kind of the first operand's dtype; see `Elementwise`.
        name: unless given, the ufunc's.
        reference: computes the values, of operands that have been cast as the ufunc casts them.
        cost: see `Elementwise`.
        python: whether Python's own numbers have the operation, so that weak operands give a weak
            result.
        promote: the dtypes that operands are cast to; unless given, as the ufunc casts them.
        operands: sample operands from the edge cases of a dtype; unless given, all combinations.
        more: further samples.
        derivative: see `Op`.
    """
    name = name or ufunc.__name__

    @lru_cache(maxsize=_REMEMBERED)
    def promote_by_ufunc(*types: ArrayType) -> tuple[np.dtype[Any], ...]:
        return resolve(ufunc, types, name)[:-1]

    def cast_first(*operands: Any) -> Any:
        assert reference is not None
        operands = tuple([np.asarray(x) if isinstance(x, list) else x for x in operands])
        dtypes = promote_by_ufunc(*map(type_of, operands))
        return reference(*[np.asarray(x, d) for x, d in zip(operands, dtypes, strict=True)])

    def type_rule(*types: ArrayType) -> ArrayType:
        *accepted, result = resolve(ufunc, [t.strong() for t in types], name)
        if accepted != [t.dtype for t in types]:
            wanted = ", ".join(SHORT_NAMES[d] for d in accepted)
            raise TypeError(f"{name}: operands {listed(types)} must be cast to {wanted} first")
        weak = python and all(t.weak for t in types)
        return ArrayType(result, broadcast_shapes(*(t.shape for t in types)), weak)

    def samples() -> list[Sample]:
        choose = operands or (lambda _, values: grid(values, ufunc.nin))
        found = [Sample(choose(dtype, tricky(dtype))) for dtype in native_dtypes(ufunc)]
        return [*found, *more()]

    form = Elementwise(c, cost)
    values = quiet(ufunc if reference is None else cast_first)
    dtypes = promote or promote_by_ufunc
    return register(Op(name, doc, type_rule, values, form, samples, dtypes, derivative))


def resolve(
    ufunc: np.ufunc, types: Sequence[ArrayType], name: str | None = None
) -> tuple[np.dtype[Any], ...]:
    """The dtypes that a ufunc casts its operands to, then that of its result, by NumPy's rules.

    Raises:
        TypeError: the ufunc, or the op of this name, is not defined for these types.
    """
    # For Python scalars alone, dtypes: promotion tokens would select the loops over objects.
    weak = all(t.weak for t in types)
    try:
        if weak and mixes_signs(types):
            return _resolve_ints(ufunc, tuple(t.dtype for t in types))
        return _resolve(ufunc, tuple(t.dtype for t in types) if weak else promotion_tokens(types))
    except TypeError:
        raise TypeError(
            f"{name or ufunc.__name__} is not defined for {listed(types)}; "
            "cast to a dtype that it takes: "
            + ", ".join(SHORT_NAMES[d] for d in native_dtypes(ufunc))
        ) from None


@cache
def _resolve_ints(ufunc: np.ufunc, dtypes: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...]:
    """As `_resolve`, for Python ints of int64 and of uint64: where NumPy takes floats, uint64."""
    unsigned = (np.dtype(np.uint64),) * len(dtypes)
    try:
        mixed = _resolve(ufunc, dtypes)
    except TypeError:
        return _resolve(ufunc, unsigned)
    if mixed[0].kind != "f":  # a comparison takes both as they are
        return mixed
    exact = _resolve(ufunc, unsigned)
    return exact if exact[0].kind == "u" else mixed


@cache
def _resolve(ufunc: np.ufunc, tokens: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    return ufunc.resolve_dtypes((*tokens, None))


@cache
def native_dtypes(ufunc: np.ufunc) -> tuple[np.dtype[Any], ...]:
    """The supported dtypes for which a ufunc needs no cast."""
    return tuple(d for d in SHORT_NAMES if _is_native(ufunc, d))


def _is_native(ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    try:
        return all(d == dtype for d in _resolve(ufunc, (dtype,) * ufunc.nin)[:-1])
    except TypeError:
        return False


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without NumPy's floating-point warnings; `__wrapped__` is the original."""

    @wraps(function)
    def reference(*operands: Any, **attrs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*operands, **attrs)

    return reference


def listed(types: Sequence[ArrayType]) -> str:
    """Types for an error message."""
    return ", ".join(map(str, types))


def texts(**by_kinds: str) -> dict[str, str]:
    """C++ texts by kind, from texts by several: `texts(iu="a", f="b")`."""
    return {kind: text for kinds, text in by_kinds.items() for kind in kinds}
