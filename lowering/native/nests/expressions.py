"""Expressions of a nest as instructions: one register for each distinct expression.

Expressions are interned, so that a value that is computed already is found by its expression. What
the ranges of axes decide is not computed: a predicate that holds everywhere in this part of a loop,
a remainder that is a subtraction there, and operands of a choice that is not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from lowering.native.library.symbols import elementwise
from lowering.native.nests.operations import Operations
from lowering.native.nests.ranges import Ranges
from lowering.native.types import Parts, element_type, literal, number, register_parts
from lowering.native.writer import Writer
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.strides import offset_in
from tracegraph.dtypes import BOOL
from tracegraph.ir.scalar import (
    INDEX,
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
)
from tracegraph.ir.scalar_values import Accumulated, Apply, AsIndex, AsValue, Load

PRODUCT_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""Dtypes whose small powers are products, which round once or twice."""

RELATIONS = {"<": "slt", ">=": "sge", "==": "eq"}


class NestExpressions:
    """The values of one nest's expressions where the next instruction is written."""

    def __init__(
        self, writer: Writer, operations: Operations, addresses: Mapping[Buffer, str]
    ) -> None:
        self.writer = writer
        self.operations = operations
        self.addresses = addresses
        self.ranges = Ranges({})
        self.values: dict[Expr, Parts] = {}
        self.axes: dict[int, str] = {}
        self._fast: str | None = None

    # -- scopes ---------------------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Values that are computed within are forgotten behind it."""
        before = self.values, self.ranges, self.axes
        self.values, self.axes = dict(self.values), dict(self.axes)
        yield
        self.values, self.ranges, self.axes = before

    def bind(self, axis: int, register: str, low: int, high: int) -> None:
        """Give the index along an axis, and its range, to what is computed in this scope."""
        self.axes[axis] = register
        self.ranges = self.ranges.restricted(axis, low, high)

    @contextmanager
    def in_fast_forms(self, holds: str) -> Iterator[None]:
        """Within, ops are in forms that are right in a range, if they have one.

        `holds` is the address of an ``i1``, which becomes false where operands are out of range;
        with "", nothing is tested.
        """
        self._fast = holds
        yield
        self._fast = None

    # -- values ---------------------------------------------------------------------------------

    def value(self, expr: Expr) -> Parts:
        """The value of an expression."""
        found = self.values.get(expr)
        if found is None:
            self.compute((expr,))
            found = self.values[expr]
        return found

    def index(self, expr: Expr) -> str:
        """The value of an index, an `i64`."""
        return self.value(expr)[0]

    def compute(self, roots: Iterable[Expr]) -> None:
        """Write the instructions of the roots, operands first."""
        values, stack = self.values, [(root, False) for root in reversed(tuple(roots))]
        while stack:
            expr, ready = stack.pop()
            if expr in values:
                continue
            if ready:
                values[expr] = _WRITERS[type(expr)](self, expr)
                continue
            stack.append((expr, True))
            stack.extend([(child, False) for child in reversed(self.operands(expr))])

    def operands(self, expr: Expr) -> tuple[Expr, ...]:
        """The expressions that must be computed before this one, in these ranges."""
        match expr:
            case Load(buffer=buffer, indices=indices, guard=guard):
                known = self.ranges.truth(guard)
                if known is False:
                    return ()
                position = offset_in(buffer.type.shape, indices)
                return (position,) if known or guard is None else (position, guard)
            case Select(predicate=predicate, chosen=chosen, other=other):
                known = self.ranges.truth(predicate)
                if known is not None:
                    return (chosen,) if known else (other,)
            case Both(left=left, right=right):
                if self.ranges.truth(expr) is not None:
                    return ()
                return tuple([side for side in (left, right) if not self.ranges.truth(side)])
            case Compare():
                if self.ranges.truth(expr) is not None:
                    return ()
            case FloorDiv():
                bounds = self.ranges.bounds(expr)
                if bounds is not None and bounds[0] == bounds[1]:
                    return ()
        return expr.children

    def address(self, buffer: Buffer, position: str) -> str:
        """The address of an element of a buffer."""
        base = self.addresses[buffer]
        return self.writer.element(element_type(buffer.type.dtype), base, position)

    def position(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        """The position of an element in a buffer."""
        return self.index(offset_in(buffer.type.shape, indices))


def _constant(run: NestExpressions, expr: Const) -> Parts:
    return literal(expr)


def _axis(run: NestExpressions, expr: Axis) -> Parts:
    return (run.axes[expr.number],)


def _sum(run: NestExpressions, expr: Sum) -> Parts:
    write, total = run.writer.assign, ""
    for term, factor in expr.terms:
        value = run.index(term)
        if factor != 1:
            value = write(f"mul nsw i64 {value}, {factor}")
        total = value if not total else write(f"add nsw i64 {total}, {value}")
    return (write(f"add nsw i64 {total}, {expr.offset}") if expr.offset else total,)


def _modulo(run: NestExpressions, expr: Mod) -> Parts:
    write, divisor = run.writer.assign, expr.divisor
    bounds, x = run.ranges.bounds(expr.operand), run.index(expr.operand)
    if bounds is not None:
        whole = bounds[0] // divisor
        if whole == bounds[1] // divisor:
            return (write(f"sub nsw i64 {x}, {whole * divisor}") if whole else x,)
        if bounds[0] >= 0:
            return (write(f"urem i64 {x}, {divisor}"),)
    rest = write(f"srem i64 {x}, {divisor}")
    negative = write(f"icmp slt i64 {rest}, 0")
    raised = write(f"add i64 {rest}, {divisor}")
    return (write(f"select i1 {negative}, i64 {raised}, i64 {rest}"),)


def _floor_divide(run: NestExpressions, expr: FloorDiv) -> Parts:
    write, divisor = run.writer.assign, expr.divisor
    own = run.ranges.bounds(expr)
    if own is not None and own[0] == own[1]:
        return (str(own[0]),)
    bounds, x = run.ranges.bounds(expr.operand), run.index(expr.operand)
    if bounds is not None and bounds[0] >= 0:
        return (write(f"udiv i64 {x}, {divisor}"),)
    rest = write(f"srem i64 {x}, {divisor}")
    negative = write(f"icmp slt i64 {rest}, 0")
    quotient = write(f"sdiv i64 {x}, {divisor}")
    lowered = write(f"sub i64 {quotient}, 1")
    return (write(f"select i1 {negative}, i64 {lowered}, i64 {quotient}"),)


def _clamp(run: NestExpressions, expr: Clamp) -> Parts:
    bounds, x = run.ranges.bounds(expr.operand), run.index(expr.operand)
    call = run.writer.call
    if bounds is None or bounds[0] < expr.low:
        x = call("i64", "llvm.smax.i64", f"i64 {x}", f"i64 {expr.low}")
    if bounds is None or bounds[1] > expr.high:
        x = call("i64", "llvm.smin.i64", f"i64 {x}", f"i64 {expr.high}")
    return (x,)


def _compare(run: NestExpressions, expr: Compare) -> Parts:
    known = run.ranges.truth(expr)
    if known is not None:
        return ("true" if known else "false",)
    left, right = run.index(expr.left), run.index(expr.right)
    return (run.writer.assign(f"icmp {RELATIONS[expr.relation]} i64 {left}, {right}"),)


def _both(run: NestExpressions, expr: Both) -> Parts:
    known = run.ranges.truth(expr)
    if known is not None:
        return ("true" if known else "false",)
    sides = [run.value(s)[0] for s in (expr.left, expr.right) if not run.ranges.truth(s)]
    if len(sides) == 1:
        return (sides[0],)
    return (run.writer.assign(f"and i1 {sides[0]}, {sides[1]}"),)


def _select(run: NestExpressions, expr: Select) -> Parts:
    known = run.ranges.truth(expr.predicate)
    if known is not None:
        return run.value(expr.chosen if known else expr.other)
    condition, types = run.value(expr.predicate)[0], register_parts(expr.dtype)
    return select_parts(run.writer, types, condition, run.value(expr.chosen), run.value(expr.other))


def select_parts(
    writer: Writer, types: Parts, condition: str, chosen: Parts, other: Parts
) -> Parts:
    """One of two values."""
    if condition in ("true", "false"):
        return chosen if condition == "true" else other
    return tuple(
        writer.assign(f"select i1 {condition}, {type_} {x}, {type_} {y}")
        for type_, x, y in zip(types, chosen, other, strict=True)
    )


def _load(run: NestExpressions, expr: Load) -> Parts:
    known = run.ranges.truth(expr.guard)
    if known is False:
        return number(0, expr.dtype)
    guard = None if known or expr.guard is None else run.value(expr.guard)[0]
    position = run.position(expr.buffer, expr.indices)
    if guard is not None:
        position = run.writer.assign(f"select i1 {guard}, i64 {position}, i64 0")
    found = run.operations.load_parts(expr.dtype, run.address(expr.buffer, position))
    if guard is None:
        return found
    types = register_parts(expr.dtype)
    return select_parts(run.writer, types, guard, found, number(0, expr.dtype))


def _apply(run: NestExpressions, expr: Apply) -> Parts:
    power = _small_power(expr)
    if power:
        return _product(run, expr, power)
    function = elementwise(expr.op, expr.attrs, [arg.dtype for arg in expr.args], expr.dtype)
    assert function is not None, f"op {expr.op.name} has no native form: see `supported`"
    args = [run.value(arg) for arg in expr.args]
    if run._fast is None or function.fast is None:
        return run.operations.call(function, args)
    fast, in_range = function.fast
    if run._fast:
        test = replace(function, name=in_range, result=BOOL, fast=None)
        before = run.writer.assign(f"load i1, ptr {run._fast}")
        (here,) = run.operations.call(test, args)
        both = run.writer.assign(f"and i1 {before}, {here}")
        run.writer.line(f"store i1 {both}, ptr {run._fast}")
    return run.operations.call(replace(function, name=fast, fast=None), args)


def has_fast_form(expr: Apply) -> bool:
    """Whether an op has a form that is right in a range only."""
    function = elementwise(expr.op, expr.attrs, [arg.dtype for arg in expr.args], expr.dtype)
    return function is not None and function.fast is not None


def _small_power(expr: Apply) -> int:
    """The exponent of a power of a float that is a product of two, three or four; else 0."""
    if expr.op.name not in ("power", "float_power") or expr.dtype not in PRODUCT_DTYPES:
        return 0
    exponent = expr.args[1]
    if type(exponent) is not Const or exponent.value not in (2, 3, 4):
        return 0
    return int(exponent.value.real)


def _product(run: NestExpressions, expr: Apply, power: int) -> Parts:
    (type_,) = register_parts(expr.dtype)
    base = run.value(expr.args[0])[0]
    square = run.writer.assign(f"fmul {type_} {base}, {base}")
    if power == 2:
        return (square,)
    return (run.writer.assign(f"fmul {type_} {square}, {base if power == 3 else square}"),)


def _as_value(run: NestExpressions, expr: AsValue) -> Parts:
    return run.operations.convert(INDEX, expr.dtype, run.value(expr.operand))


def _as_index(run: NestExpressions, expr: AsIndex) -> Parts:
    value, dtype = run.value(expr.operand), expr.operand.dtype
    (type_,) = register_parts(dtype)
    return (run.writer.widened(type_, dtype.kind == "i", value[0]),)


def _accumulated(run: NestExpressions, expr: Accumulated) -> Parts:
    raise KeyError(f"accumulator {expr.number} is used before it is folded")


_WRITERS: dict[type[Expr], Callable[[NestExpressions, Any], Parts]] = {
    Const: _constant,
    Axis: _axis,
    Sum: _sum,
    Mod: _modulo,
    FloorDiv: _floor_divide,
    Clamp: _clamp,
    Compare: _compare,
    Both: _both,
    Select: _select,
    Load: _load,
    Apply: _apply,
    AsValue: _as_value,
    AsIndex: _as_index,
    Accumulated: _accumulated,
}
"""The instructions of each kind of expression; its operands are computed already."""
