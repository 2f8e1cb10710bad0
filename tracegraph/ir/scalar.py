"""The scalar language: what one element of an array is, as an expression of its index.

An op says how one element of its result comes from elements of its operands (`Op.form`); kernels
are made by composing such expressions, so that a view costs nothing and a chain of ops is one
expression.

    Expr := Axis | Const | Sum | FloorDiv | Mod | Clamp        index arithmetic, 64-bit
          | Compare | Both | Select                             predicates and choice
          | Load | Apply | AsValue | AsIndex | Accumulated      values, in ir/scalar_values.py

Nodes are interned: equal expressions are one object, so shared work is computed once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, TypeGuard, TypeVar

import numpy as np

from tracegraph.dtypes import BOOL
from tracegraph.ir.interning import Interned
from tracegraph.ir.record import record

INDEX = np.dtype(np.int64)

_E = TypeVar("_E", bound="Expr")


class Expr:
    """An interned scalar expression with a dtype. Integer arithmetic on index expressions folds."""

    __slots__ = ("__weakref__",)
    _interned: ClassVar[Interned] = Interned()
    dtype: np.dtype[Any]

    @classmethod
    def make(cls: type[_E], *args: Any) -> _E:
        """The one expression of this class with these fields."""
        key = (cls, *args)
        entry = _entry(key)
        found: _E | None = None if entry is None else entry()
        return _add(key, cls(*args)) if found is None else found

    def __add__(self, other: Expr | int) -> Expr:
        return linear([(self, 1), (other, 1)]) if other != 0 else self

    __radd__ = __add__

    def __sub__(self, other: Expr | int) -> Expr:
        return linear([(self, 1), (other, -1)]) if other != 0 else self

    def __rsub__(self, other: Expr | int) -> Expr:
        return linear([(self, -1), (other, 1)])

    def __mul__(self, factor: int) -> Expr:
        return linear([(self, factor)]) if factor != 1 else self

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return linear([(self, -1)])

    def __floordiv__(self, divisor: int) -> Expr:
        return floor_divide(self, divisor)

    def __mod__(self, divisor: int) -> Expr:
        return modulo(self, divisor)

    def __lt__(self, other: Expr | int) -> Expr:
        return compare("<", self, other)

    def __ge__(self, other: Expr | int) -> Expr:
        return compare(">=", self, other)

    def equals(self, other: Expr | int) -> Expr:
        """The predicate that two index expressions are equal."""
        return compare("==", self, other)

    @property
    def children(self) -> tuple[Expr, ...]:
        """The expressions that this one is made of."""
        raise NotImplementedError

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        """The expression with `of(child)` for each child; it folds as when it is first made."""
        return self


_entry, _add = Expr._interned.entry, Expr._interned.add


@record
class Axis(Expr):
    """The index along axis `number` of the iteration space, from 0 to `extent` - 1."""

    number: int
    extent: int
    dtype = INDEX
    children = ()


@record
class Const(Expr):
    """A constant; `value` is a Python scalar (for float16 and bfloat16 a float)."""

    value: bool | int | float | complex
    dtype: np.dtype[Any]
    bits: bytes = b""  # distinguishes -0.0 from 0.0, and NaNs, when interning
    children = ()


@record
class Sum(Expr):
    """offset + Σ factor · term: the canonical form of index arithmetic."""

    terms: tuple[tuple[Expr, int], ...]
    offset: int
    dtype = INDEX

    @property
    def children(self) -> tuple[Expr, ...]:
        return tuple([term for term, _ in self.terms])

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return linear([(of(term), factor) for term, factor in self.terms], self.offset)


@record
class FloorDiv(Expr):
    """Floor of an index by a positive constant."""

    operand: Expr
    divisor: int
    dtype = INDEX

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return floor_divide(of(self.operand), self.divisor)


@record
class Mod(Expr):
    """An index modulo a positive constant, never negative."""

    operand: Expr
    divisor: int
    dtype = INDEX

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return modulo(of(self.operand), self.divisor)


@record
class Clamp(Expr):
    """An index clamped to low..high, both included."""

    operand: Expr
    low: int
    high: int
    dtype = INDEX

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return clamp(of(self.operand), self.low, self.high)


@record
class Compare(Expr):
    """A predicate on two index expressions; `relation` is '<', '>=' or '=='."""

    relation: str
    left: Expr
    right: Expr
    dtype = BOOL

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return compare(self.relation, of(self.left), of(self.right))


@record
class Both(Expr):
    """Conjunction of two predicates."""

    left: Expr
    right: Expr
    dtype = BOOL

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        result = both(of(self.left), of(self.right))
        return TRUE if result is None else result


@record
class Select(Expr):
    """`chosen` where the predicate holds, else `other`. Loads in both have their own guards."""

    predicate: Expr
    chosen: Expr
    other: Expr

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.chosen.dtype

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.predicate, self.chosen, self.other)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return select(of(self.predicate), of(self.chosen), of(self.other))


def const(value: Any, dtype: np.dtype[Any] = INDEX) -> Const:
    """A constant of a dtype; by default, an index."""
    if dtype is INDEX and type(value) is int:
        return _index(value)
    if getattr(value, "dtype", None) is not dtype:
        value = np.asarray(value, dtype)
    return _of_bits(value.tobytes(), dtype)


@lru_cache(maxsize=1024)
def _of_bits(bits: bytes, dtype: np.dtype[Any]) -> Const:
    (exact,) = np.frombuffer(bits, dtype)
    python = exact.astype(np.float64).item() if dtype.kind in "fV" else exact.item()
    return Const.make(python, dtype, bits)


@lru_cache(maxsize=1024)
def _index(value: int) -> Const:
    return Const.make(value, INDEX, value.to_bytes(8, sys.byteorder, signed=True))


def as_expr(value: Expr | int) -> Expr:
    """An index expression of an int, or the expression itself."""
    return value if isinstance(value, Expr) else const(value)


def linear(parts: list[tuple[Expr | int, int]], offset: int = 0) -> Expr:
    """The sum offset + Σ factor · part, folded: nested sums flatten, and e//n·n + e%n is e.

    Likewise, e//n%m·n + e%n is e%(n·m). Both arise from a reshape and its inverse.
    """
    terms: dict[Expr, int] = {}
    stack = parts[::-1]
    while stack:
        part, factor = stack.pop()
        if isinstance(part, int):
            offset += part * factor
        elif type(part) is Const:
            offset += int(part.value) * factor  # type: ignore[arg-type]
        elif type(part) is Sum:
            offset += part.offset * factor
            stack.extend((term, inner * factor) for term, inner in reversed(part.terms))
        else:
            terms[part] = terms.get(part, 0) + factor
    if 0 in terms.values():
        terms = {term: factor for term, factor in terms.items() if factor}
    for rest in [t for t in terms if type(t) is Mod] if len(terms) > 1 else ():
        factor = terms[rest]
        found = _quotient_term(rest, factor, terms)
        if found is not None:
            quotient, together = found
            del terms[rest], terms[quotient]
            return linear([*terms.items(), (together, factor)], offset)
    if not terms:
        return const(offset)
    if offset == 0 and len(terms) == 1:
        ((term, factor),) = terms.items()
        if factor == 1:
            return term
    return Sum.make(tuple(terms.items()), offset)


def _quotient_term(rest: Mod, factor: int, terms: dict[Expr, int]) -> tuple[Expr, Expr] | None:
    """The term e//n or e//n % m that completes factor · (e % n), and the sum of both."""
    wanted = factor * rest.divisor
    if wanted not in terms.values():
        return None
    whole = floor_divide(rest.operand, rest.divisor)
    if terms.get(whole) == wanted:
        return whole, rest.operand
    for term, given in terms.items():
        if type(term) is Mod and term.operand is whole and given == wanted:
            return term, modulo(rest.operand, rest.divisor * term.divisor)
    return None


def bounds(expr: Expr) -> tuple[int, int] | None:
    """The bounds of an index expression, both included; None if they depend on data."""
    if type(expr) is Axis:  # most are
        return 0, max(expr.extent - 1, 0)
    match expr:
        case Const(value=value):
            return int(value), int(value)  # type: ignore[arg-type]
        case Sum(terms=terms, offset=offset):
            low = high = offset
            for term, factor in terms:
                inner = bounds(term)
                if inner is None:
                    return None
                first, last = inner[0] * factor, inner[1] * factor
                low, high = low + min(first, last), high + max(first, last)
            return low, high
        case Clamp(low=low, high=high):
            return low, high
        case Mod(divisor=divisor):
            return 0, divisor - 1
        case FloorDiv(operand=operand, divisor=divisor):
            inner = bounds(operand)
            return inner and (inner[0] // divisor, inner[1] // divisor)
        case Select(chosen=chosen, other=other):
            ends, others = bounds(chosen), bounds(other)
            if ends is None or others is None:
                return None
            return min(ends[0], others[0]), max(ends[1], others[1])
    return None


def floor_divide(expr: Expr, divisor: int) -> Expr:
    """Floor division of an index by a positive int, folded where bounds allow."""
    if divisor == 1:
        return expr
    limits = bounds(expr)
    if limits is not None and limits[0] // divisor == limits[1] // divisor:
        return const(limits[0] // divisor)
    whole, rest = _split(expr, divisor)
    if whole is not None:
        return whole + floor_divide(rest, divisor)
    if type(expr) is FloorDiv:
        return floor_divide(expr.operand, expr.divisor * divisor)
    if _is_rest_of_multiple(expr, divisor):
        return modulo(floor_divide(expr.operand, divisor), expr.divisor // divisor)
    return FloorDiv.make(expr, divisor)


def modulo(expr: Expr, divisor: int) -> Expr:
    """An index modulo a positive int, folded where the bounds allow."""
    if divisor == 1:
        return const(0)
    whole, rest = _split(expr, divisor)
    if whole is not None:
        expr = rest
    limits = bounds(expr)
    if limits is not None and limits[0] // divisor == limits[1] // divisor:
        return expr - limits[0] // divisor * divisor
    if _is_rest_of_multiple(expr, divisor):
        return modulo(expr.operand, divisor)
    if type(expr) is Sum and any(_is_rest_of_multiple(t, divisor) for t, _ in expr.terms):
        # two rolls are one
        terms: list[tuple[Expr | int, int]] = [
            (t.operand if _is_rest_of_multiple(t, divisor) else t, f) for t, f in expr.terms
        ]
        return modulo(linear(terms, expr.offset), divisor)
    return Mod.make(expr, divisor)


def _is_rest_of_multiple(expr: Expr, divisor: int) -> TypeGuard[Mod]:
    """Whether it is the remainder by a multiple of the divisor."""
    return type(expr) is Mod and expr.divisor % divisor == 0


def _split(expr: Expr, divisor: int) -> tuple[Expr | None, Expr]:
    """`expr` as whole · divisor + rest, where `whole` has all terms that are multiples."""
    if type(expr) is not Sum:
        return None, expr
    multiple = [(t, f // divisor) for t, f in expr.terms if f % divisor == 0]
    if not multiple and 0 <= expr.offset < divisor:
        return None, expr
    others: list[tuple[Expr | int, int]] = [(t, f) for t, f in expr.terms if f % divisor]
    whole = linear(list(multiple), expr.offset // divisor)
    return whole, linear(others, expr.offset % divisor)


def clamp(expr: Expr | int, low: int, high: int) -> Expr:
    """An index clamped to low..high; the index itself if its bounds are within."""
    index = as_expr(expr)
    limits = bounds(index)
    if limits is None:
        return Clamp.make(index, low, high)
    if low <= limits[0] and limits[1] <= high:
        return index
    if limits[0] == limits[1]:
        return const(min(max(limits[0], low), high))
    return Clamp.make(index, low, high)


TRUE = const(True, BOOL)
FALSE = const(False, BOOL)


def compare(relation: str, left: Expr | int, right: Expr | int) -> Expr:
    """A predicate on indices, folded where bounds decide it."""
    left, right = as_expr(left), as_expr(right)
    if type(right) is Const:  # no difference to form
        limits, shift = bounds(left), int(right.value)  # type: ignore[arg-type]
    else:
        limits, shift = bounds(left - right), 0
    if limits is not None:
        low, high = limits[0] - shift, limits[1] - shift
        always = {"<": high < 0, ">=": low >= 0, "==": low == high == 0}[relation]
        never = {"<": low >= 0, ">=": high < 0, "==": low > 0 or high < 0}[relation]
        if always or never:
            return TRUE if always else FALSE
    if type(left) is Select and type(right) is Const:
        sides = compare(relation, left.chosen, right), compare(relation, left.other, right)
        if sides == (TRUE, FALSE):
            return left.predicate
    return Compare.make(relation, left, right)


def both(left: Expr | None, right: Expr | None) -> Expr | None:
    """Conjunction of two guards; None means always."""
    if left is None or left is TRUE:
        return None if right is TRUE else right
    if right is None or right is TRUE or left is right:
        return left
    if left is FALSE or right is FALSE:
        return FALSE
    known = set(conjuncts(left))
    if len(known) > 1 or type(right) is Both:
        for part in conjuncts(right):
            left = left if part in known else Both.make(left, part)
        return left
    return Both.make(left, right)


def conjuncts(guard: Expr) -> list[Expr]:
    """The predicates that a guard is a conjunction of, in order."""
    if type(guard) is not Both:
        return [guard]
    found: list[Expr] = []
    waiting = [guard]
    while waiting:
        part = waiting.pop()
        if type(part) is Both:
            waiting += (part.right, part.left)
        else:
            found.append(part)
    return found


def select(predicate: Expr, chosen: Expr, other: Expr) -> Expr:
    """A choice, folded where the predicate is known."""
    if predicate is TRUE or chosen is other:
        return chosen
    return other if predicate is FALSE else Select.make(predicate, chosen, other)


def affine(expr: Expr) -> tuple[dict[int, int], int] | None:
    """The coefficients by axis number and the offset of an index, if it is affine in the axes."""
    match expr:
        case Const(value=value):
            return {}, int(value)  # type: ignore[arg-type]
        case Axis(number=number):
            return {number: 1}, 0
        case Sum(terms=terms, offset=offset) if all(type(t) is Axis for t, _ in terms):
            return {t.number: f for t, f in terms}, offset  # type: ignore[attr-defined]
    return None
