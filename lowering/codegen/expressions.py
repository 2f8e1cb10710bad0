"""Common subexpression elimination while writing: one C++ variable for each distinct expression.

Expressions are interned, so equal ones are the same object, and a name bound to it is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from lowering.codegen.constants import constant, wide_constant
from lowering.codegen.powers import power_function
from lowering.codegen.preamble import c_type, kind, value_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import Store
from lowering.plan.nests.lazy_values import lazy_choices
from tracegraph.dtypes import is_half
from tracegraph.ir.op import Combiner, Elementwise
from tracegraph.ir.scalar import (
    Axis,
    Both,
    Clamp,
    Compare,
    Const,
    Expr,
    FloorDiv,
    Mod,
    Select,
    Sum,
    bounds,
)
from tracegraph.ir.scalar_values import Apply, AsIndex, AsValue, Load

INT_LIMIT = 2**31
WIDE = "tg_i64"


def template(texts: Mapping[str, str], dtype: np.dtype[Any], owner: str) -> str:
    """The C++ template of an op or combiner for operands of a dtype.

    Raises:
        TypeError: there is none for this kind of dtype.
    """
    text = texts.get(kind(dtype))
    if text is None:
        raise TypeError(f"{owner} has no C++ text for {dtype}; it has text for kinds {list(texts)}")
    return text


def round_to(dtype: np.dtype[Any], text: str) -> str:
    """A value of the computing type, converted to the type in memory."""
    return f"tg_cast<{c_type(dtype)}>({text})" if is_half(dtype) else text


def widen(dtype: np.dtype[Any], text: str) -> str:
    """A value of the type in memory, converted to the computing type."""
    return f"tg_cast<{value_type(dtype)}>({text})" if is_half(dtype) else text


def combine(combiner: Combiner, dtype: np.dtype[Any], left: str, right: str) -> str:
    """The text that combines two values of `value_type(dtype)`."""
    text = template(combiner.c, dtype, f"combiner {combiner.name}")
    return text.format(left, right, T=value_type(dtype))


def fits_int(limits: tuple[int, int] | None) -> bool:
    """Whether an index with these bounds fits 32 bits."""
    return limits is not None and limits[0] > -INT_LIMIT and limits[1] < INT_LIMIT


def index_type(size: int) -> str:
    """The type of an index that stays below `size`.

    >>> index_type(2**31), index_type(2**31 + 1)
    ('int', 'tg_i64')
    """
    return "int" if size <= INT_LIMIT else WIDE


def cast(type_: str, text: str) -> str:
    """A C++ conversion."""
    return f"{type_}({text})"


def expr_type(expr: Expr) -> str:
    """The C++ type of the variable that holds an expression."""
    if isinstance(expr, (Axis, Sum, FloorDiv, Mod, Clamp)):
        return "int" if fits_int(bounds(expr)) else WIDE
    return WIDE if isinstance(expr, AsIndex) else c_type(expr.dtype)


def pending(writer: SourceWriter, roots: Iterable[Expr]) -> list[Expr]:
    """The subexpressions that have no name yet, in topological order."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack = [(root, False) for root in reversed(tuple(roots))]
    while stack:
        expr, ready = stack.pop()
        if ready:
            order.append(expr)
        elif expr not in seen and writer.name(expr) is None:
            seen.add(expr)
            stack.append((expr, True))
            stack.extend((child, False) for child in reversed(expr.children))
    return order


def compute(writer: SourceWriter, roots: Iterable[Expr]) -> None:
    """Write the statements that compute the roots."""
    roots = tuple(roots)
    order = pending(writer, roots)
    choices = lazy_choices(order, roots)
    later = frozenset[Expr]().union(*choices.values())
    for expr in order:
        if expr in later:
            continue
        if isinstance(expr, Const):
            writer.bind(expr, constant(expr))
            continue
        if expr in choices:
            _compute_lazily(writer, expr)
            continue
        name = writer.fresh()
        writer.line(f"const {expr_type(expr)} {name} = {_text(writer, expr)};")
        writer.bind(expr, name)


def _compute_lazily(writer: SourceWriter, choice: Expr) -> None:
    """Write a choice whose chosen value is computed only if it is taken."""
    assert isinstance(choice, Select)
    name = writer.fresh()
    writer.line(f"{expr_type(choice)} {name} = {value(writer, choice.other)};")
    with writer.block(f"if ({value(writer, choice.predicate)})"):
        compute(writer, [choice.chosen])
        writer.line(f"{name} = {value(writer, choice.chosen)};")
    writer.bind(choice, name)


def hoist(writer: SourceWriter, roots: Iterable[Expr], axis: Expr) -> None:
    """Loop-invariant code motion: compute what the roots need and what an axis does not change."""
    order = pending(writer, roots)
    moving: set[Expr] = set()
    for expr in order:
        if expr is axis or not moving.isdisjoint(expr.children):
            moving.add(expr)
    compute(writer, [expr for expr in order if expr not in moving and type(expr) is not Const])


def index(writer: SourceWriter, expr: Expr) -> str:
    """The text of a computed index expression."""
    if isinstance(expr, Const):
        return _literal(int(expr.value.real))
    return _named(writer, expr)


def value(writer: SourceWriter, expr: Expr) -> str:
    """The text of a computed expression, in the C++ type of its dtype."""
    name = _named(writer, expr)
    exact = c_type(expr.dtype)
    return name if isinstance(expr, Const) or expr_type(expr) == exact else cast(exact, name)


def operand(writer: SourceWriter, expr: Expr) -> str:
    """The text of a computed expression, in the type that its dtype is computed in."""
    if isinstance(expr, Const):
        return wide_constant(expr)
    return widen(expr.dtype, value(writer, expr))


def write_store(writer: SourceWriter, store: Store, text: str) -> None:
    """Write one flat store of a text that replaces the store's own value."""
    target = f"{writer.pointers[store.buffer]}[{index(writer, store.indices[0])}]"
    guard = "" if store.guard is None else f"if ({value(writer, store.guard)}) "
    writer.line(f"{guard}{target} = {text};")


def stored(stores: Iterable[Store]) -> list[Expr]:
    """The indices, values and guards of stores."""
    return [
        root
        for store in stores
        for root in (*store.indices, store.value, store.guard)
        if root is not None
    ]


def _named(writer: SourceWriter, expr: Expr) -> str:
    name = writer.name(expr)
    if name is None:
        raise KeyError(f"an expression of class {type(expr).__name__} is used but not computed")
    return name


def _text(writer: SourceWriter, expr: Expr) -> str:
    write: Callable[[SourceWriter, Any], str] | None = _WRITERS.get(type(expr))
    if write is None:
        raise KeyError(f"{expr} is no axis or result of this nest")
    return write(writer, expr)


def _sum(writer: SourceWriter, expr: Sum) -> str:
    ends = [bounds(term) for term, _ in expr.terms]
    reach = abs(expr.offset)
    for limits, (_, factor) in zip(ends, expr.terms, strict=True):
        reach += INT_LIMIT if limits is None else max(map(abs, limits)) * abs(factor)
    widen = reach >= INT_LIMIT  # a partial sum may overflow even where the whole does not
    parts: list[str] = []
    for term, factor in expr.terms:
        name = index(writer, term)
        name = cast(WIDE, name) if widen and expr_type(term) != WIDE else name
        product = name if abs(factor) == 1 else f"{name} * {_literal(abs(factor))}"
        parts += ["+" if factor > 0 else "-", product]
    if expr.offset:
        parts += ["+" if expr.offset > 0 else "-", _literal(abs(expr.offset))]
    first = parts[1] if parts[0] == "+" else f"-{parts[1]}"
    text = " ".join([first, *parts[2:]])
    return cast("int", text) if widen and expr_type(expr) == "int" else text


def _unsigned(writer: SourceWriter, dividend: Expr, operation: str, divisor: int) -> str | None:
    """`dividend operation divisor` in unsigned arithmetic, which takes fewer instructions.

    None if the dividend may be negative.
    """
    limits = bounds(dividend)
    if limits is None or limits[0] < 0:
        return None
    if fits_int(limits) and divisor < INT_LIMIT:
        return f"tg_u32({index(writer, dividend)}) {operation} {divisor}u"
    return f"tg_u64({index(writer, dividend)}) {operation} {divisor}ull"


def _floor_divide(writer: SourceWriter, expr: FloorDiv) -> str:
    text = _unsigned(writer, expr.operand, "/", expr.divisor)
    if text is None:
        x, divisor = index(writer, expr.operand), _literal(expr.divisor)
        text = f"{x} >= 0 ? {x} / {divisor} : -1 - (-1 - {x}) / {divisor}"
    return cast(expr_type(expr), text)


def _modulo(writer: SourceWriter, expr: Mod) -> str:
    text = _unsigned(writer, expr.operand, "%", expr.divisor)
    if text is None:
        divisor = _literal(expr.divisor)
        rest = f"{index(writer, expr.operand)} % {divisor}"
        text = f"{rest} < 0 ? {rest} + {divisor} : {rest}"
    return cast(expr_type(expr), text)


def _literal(number: int) -> str:
    return f"{number}ll" if abs(number) >= INT_LIMIT else str(number)


def _clamp(writer: SourceWriter, expr: Clamp) -> str:
    x, low, high = index(writer, expr.operand), _literal(expr.low), _literal(expr.high)
    return cast(expr_type(expr), f"{x} < {low} ? {low} : {x} > {high} ? {high} : {x}")


def _select(writer: SourceWriter, expr: Select) -> str:
    choice = f"{value(writer, expr.chosen)} : {value(writer, expr.other)}"
    return f"{value(writer, expr.predicate)} ? {choice}"


def _load(writer: SourceWriter, expr: Load) -> str:
    element = f"{writer.pointers[expr.buffer]}[{index(writer, expr.indices[0])}]"
    if expr.guard is None:
        return element
    return f"{value(writer, expr.guard)} ? {element} : {c_type(expr.dtype)}()"


def _apply(writer: SourceWriter, expr: Apply) -> str:
    form = expr.op.form
    if not isinstance(form, Elementwise):
        raise TypeError(f"op {expr.op.name} is not elementwise: it has no scalar expression")
    power = power_function(expr)
    if power is not None:
        return round_to(expr.dtype, f"{power}({operand(writer, expr.args[0])})")
    native = form.c.get("e") if is_half(expr.args[0].dtype) else None
    if native is not None:
        return native.format(*(value(writer, arg) for arg in expr.args))
    text = template(form.c, expr.args[0].dtype, f"op {expr.op.name}")
    args = [operand(writer, arg) for arg in expr.args]
    result = text.format(*args, **dict(expr.attrs), T=c_type(expr.dtype))
    return round_to(expr.dtype, result)


_WRITERS: dict[type[Expr], Callable[[SourceWriter, Any], str]] = {
    Sum: _sum,
    FloorDiv: _floor_divide,
    Mod: _modulo,
    Clamp: _clamp,
    Compare: lambda writer, e: f"{index(writer, e.left)} {e.relation} {index(writer, e.right)}",
    Both: lambda writer, e: f"{value(writer, e.left)} && {value(writer, e.right)}",
    Select: _select,
    Load: _load,
    Apply: _apply,
    AsValue: lambda writer, e: f"tg_cast<{c_type(e.dtype)}>({index(writer, e.operand)})",
    AsIndex: lambda writer, e: cast(WIDE, value(writer, e.operand)),
}
"""The text of each kind of expression; its operands are computed already."""
