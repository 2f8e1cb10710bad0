"""How a step of a scan changes its carry, where that is h = a h + b for each of its arrays.

Factors and terms depend on the slices of the step and on captures, not on the carry. A body is read
twice: once to see whether it is of this kind, and once to record the equations of `a` and `b`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lowering.planning.expansion.recurrences import intervals
from lowering.planning.expansion.recurrences.intervals import Interval
from tracegraph.ir.op import Elementwise, Indexed, Op, Reduction, get
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType

Compute = Callable[[Op, Sequence[Any], Mapping[str, Any]], Any]
"""What an op gives for values."""

Known = Callable[[Value], Interval | None]
"""The bounds of a parameter, if any are known."""

_FORMS = (Elementwise, Indexed, Reduction)


@record
class Affine:
    """factor * h + term, for array number `carry` of the carry; None is a factor of 1, a term of 0.

    The elements of the factor are between `bounds`. Where `kept` is false, a choice has dropped h,
    which may be NaN; None where no choice does that.
    """

    carry: int
    type: ArrayType
    bounds: Interval
    factor: Any = None
    term: Any = None
    kept: Any = None

    @property
    def is_stable(self) -> bool:
        """Whether the factor is at most 1: products cannot overflow, and errors do not grow.

        Integers may have any: they wrap around in any order alike.
        """
        return self.type.dtype.kind in "iu" or max(map(abs, self.bounds)) <= 1

    @property
    def is_growing(self) -> bool:
        """Whether the factor is above 1 in any case."""
        return self.type.dtype.kind in "fc" and (self.bounds[0] > 1 or self.bounds[1] < -1)


def recurrence(body: Region, carry: int, known: Known) -> list[Affine] | None:
    """How a step changes a carry, without values, if it is linear in it and does not grow."""
    types = [param.type for param in body.params[:carry]]
    if not types or not all(t.dtype.kind in "fciu" and t.dtype.itemsize >= 4 for t in types):
        return None
    if not all(isinstance(e.op.form, _FORMS) or e.op.name == "matmul" for e in body.eqns):
        return None
    found = changes(body, carry, [...] * len(body.params), lambda *_: ..., known)
    return None if found is None or any(change.is_growing for change in found) else found


def changes(
    body: Region,
    carry: int,
    values: Sequence[Any],
    compute: Compute,
    known: Known = lambda _: None,
) -> list[Affine] | None:
    """How a step changes the arrays of the carry, for values of the parameters; those of the carry
    are not used. None if it is no recurrence.
    """
    reader = _Reader(body, carry, values, compute, known)
    for eqn in body.eqns:
        reader.read(eqn)
    found = [reader.affine.get(atom) for atom in body.results[:carry]]
    wanted = [(number, param.type) for number, param in enumerate(body.params[:carry])]
    changed = [change for change in found if change is not None]
    return changed if [(c.carry, c.type) for c in changed] == wanted else None


class _Reader:
    """The affine values of a body, and the equations of those that do not depend on the carry."""

    def __init__(
        self, body: Region, carry: int, values: Sequence[Any], compute: Compute, known: Known
    ) -> None:
        self.compute, self.known = compute, known
        self.values: dict[Atom, Any] = dict(zip(body.params, values, strict=True))
        self.free: dict[Value, Eqn] = {}
        self.affine: dict[Atom, Affine] = {
            param: Affine(i, param.type, (1, 1)) for i, param in enumerate(body.params[:carry])
        }
        self.others: set[Atom] = set()
        """Values that depend on the carry in another manner."""

    def read(self, eqn: Eqn) -> None:
        """Note what the equation's results are."""
        if not self.others.isdisjoint(eqn.operands):
            self.others.update(eqn.outputs)
        elif self.affine.keys().isdisjoint(eqn.operands):
            self.free.update(dict.fromkeys(eqn.outputs, eqn))
        elif (found := self.affine_result(eqn)) is not None:
            self.affine[eqn.outputs[0]] = found
        else:
            self.others.update(eqn.outputs)

    def affine_result(self, eqn: Eqn) -> Affine | None:
        """The result of an equation with an operand that is affine, if it is affine, too."""
        rule = _RULES.get(eqn.op.name)
        type_ = eqn.outputs[0].type
        of = [self.affine.get(atom, atom) for atom in eqn.operands]
        carries = {(x.carry, x.type.dtype) for x in of if isinstance(x, Affine)}
        if rule is None or len(carries) > 1 or carries.pop()[1] != type_.dtype:
            return None
        found = rule(self, *of)
        return None if found is None else replace(found, type=type_)

    def value(self, atom: Atom) -> Any:
        """The value of an atom that does not depend on the carry."""
        if isinstance(atom, Literal):
            return atom.value
        if atom not in self.values:
            eqn = self.free[atom]
            found = self.compute(eqn.op, list(map(self.value, eqn.operands)), eqn.attrs)
            several = len(eqn.outputs) > 1
            self.values.update(zip(eqn.outputs, found if several else (found,), strict=True))
        return self.values[atom]

    def bounds(self, atom: Atom) -> Interval:
        """Those of an atom that does not depend on the carry."""
        return intervals.interval_of(atom, self.free, self.known)

    def apply(self, name: str, *values: Any) -> Any:
        """What an op gives."""
        return self.compute(get(name), values, {})

    def plus(self, x: Any, y: Any) -> Any:
        """The sum of terms."""
        return y if x is None else x if y is None else self.apply("add", x, y)


Operand = Affine | Atom


def _apart(x: Operand, y: Operand) -> tuple[Affine, Atom]:
    """The operand that is affine, and the other one, which is not."""
    if isinstance(x, Affine):
        assert not isinstance(y, Affine)
        return x, y
    assert isinstance(y, Affine)
    return y, x


def _sum(reader: _Reader, x: Operand, y: Operand) -> Affine | None:
    if isinstance(x, Affine) and isinstance(y, Affine):
        one = x.type.dtype.type(1)
        factor = reader.apply("add", _given(x.factor, one), _given(y.factor, one))
        bounds, term = intervals.plus(x.bounds, y.bounds), reader.plus(x.term, y.term)
        kept = None
        if x.kept is not None and y.kept is not None:
            kept = reader.apply("bitwise_or", x.kept, y.kept)
        return replace(x, bounds=bounds, factor=factor, term=term, kept=kept)
    own, other = _apart(x, y)
    return replace(own, term=reader.plus(own.term, reader.value(other)))


def _negative(reader: _Reader, x: Affine) -> Affine:
    factor = reader.apply("negative", _given(x.factor, x.type.dtype.type(1)))
    term = None if x.term is None else reader.apply("negative", x.term)
    return replace(x, bounds=(-x.bounds[1], -x.bounds[0]), factor=factor, term=term)


def _difference(reader: _Reader, x: Operand, y: Operand) -> Affine | None:
    if isinstance(y, Affine):
        return _sum(reader, x, _negative(reader, y))
    own, other = _apart(x, y)
    less = reader.apply("negative", reader.value(other))
    return replace(own, term=reader.plus(own.term, less))


def _product(reader: _Reader, x: Operand, y: Operand) -> Affine | None:
    if isinstance(x, Affine) and isinstance(y, Affine):
        return None
    own, other = _apart(x, y)
    by = reader.value(other)
    return replace(
        own,
        bounds=intervals.times(own.bounds, reader.bounds(other)),
        factor=by if own.factor is None else reader.apply("multiply", own.factor, by),
        term=None if own.term is None else reader.apply("multiply", own.term, by),
    )


def _quotient(reader: _Reader, x: Operand, y: Operand) -> Affine | None:
    if not isinstance(x, Affine) or isinstance(y, Affine):
        return None
    by = reader.value(y)
    return replace(
        x,
        bounds=intervals.over(x.bounds, reader.bounds(y)),
        factor=reader.apply("divide", _given(x.factor, x.type.dtype.type(1)), by),
        term=None if x.term is None else reader.apply("divide", x.term, by),
    )


def _where(reader: _Reader, condition: Operand, x: Operand, y: Operand) -> Affine | None:
    if isinstance(condition, Affine):
        return None
    affine = [each for each in (x, y) if isinstance(each, Affine)]
    zero, one = (affine[0].type.dtype.type(number) for number in (0, 1))
    sides = [
        (each.bounds, _given(each.factor, one), _given(each.term, zero), _given(each.kept, True))
        if isinstance(each, Affine)
        else ((0.0, 0.0), zero, reader.value(each), False)
        for each in (x, y)
    ]
    bounds, factors, terms, kept = zip(*sides, strict=True)
    test = reader.value(condition)
    return replace(
        affine[0],
        bounds=intervals.hull(*bounds),
        factor=reader.apply("where", test, *factors),
        term=reader.apply("where", test, *terms),
        kept=None if kept == (True, True) else reader.apply("where", test, *kept),
    )


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


_RULES: Mapping[str, Callable[..., Affine | None]] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _quotient,
    "negative": _negative,
    "where": _where,
}
"""Ops that keep a value affine, by name."""
