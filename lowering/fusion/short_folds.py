"""Short folds as expressions: a sum over three elements is `a + b + c`.

What a fold over a short axis gives can then be computed wherever it is used, as any other value of
a point, in another fold as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from lowering.plan.nests.analysis import nest_accumulators
from lowering.plan.nests.kernel import Accumulator, ReduceNest, RowNest, Store, space_index
from lowering.plan.nests.tiled_products import MAX_LONG_BYTES, PRODUCTS, TILED_DTYPES
from tracegraph.dtypes import is_half
from tracegraph.ir.combiners import (
    ADD,
    FMAX,
    FMIN,
    LOGICAL_AND,
    LOGICAL_OR,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
)
from tracegraph.ir.op import Elementwise, get
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr, const
from tracegraph.ir.scalar_values import Accumulated, Apply, apply
from tracegraph.ir.subexpressions import subexpressions, substitution
from tracegraph.ops.arithmetic import multiply

MAX_TERMS = 8
"""Steps of a fold that is written out: bounds the code, and the registers of a thread."""

multiply_add = replace(
    multiply,
    name="multiply_add",
    doc="x * y + z, rounded once where the device can do that.",
    reference=lambda x, y, z: x * y + z,
    form=Elementwise({"f": "fma({0}, {1}, {2})"}),
)
"""A term of a long sum. It exists while a program is lowered, and in Plans."""

_COMBINERS = (ADD, MULTIPLY, MINIMUM, MAXIMUM, FMIN, FMAX, LOGICAL_AND, LOGICAL_OR)


def written_out(
    nest: ReduceNest | RowNest, store: Store, most_terms: int = MAX_TERMS
) -> Expr | None:
    """The value of a store of a nest without accumulators; None if the folds are long, or cannot
    be written out.

    Sums of 16-bit numbers are not: they are rounded once, after the last step.
    """
    used = [e for e in subexpressions((store.value,)) if type(e) is Accumulated]
    if not used:
        return store.value
    if not 0 < prod(nest.loop) <= most_terms:
        return None
    accumulators = nest_accumulators(nest)
    steps = _steps(nest)
    values: dict[Expr, Expr] = {}
    last = max(e.number for e in used)
    for number, accumulator in enumerate(accumulators[: last + 1]):
        value = _folded(accumulator, steps, values)
        if value is None:
            return None
        values[Accumulated.make(number, value.dtype)] = value
    return substitution(values)(store.value)


def long_product(nest: ReduceNest | RowNest, store: Store) -> Expr | None:
    """The value of a store of a nest, which is a sum of products of more than a few terms, without
    the sum; None if it is no such sum.
    """
    steps, accumulators = prod(nest.loop), nest_accumulators(nest)
    if steps <= MAX_TERMS or len(accumulators) != 1:
        return None
    (accumulator,) = accumulators
    value = accumulator.value
    if accumulator.combiner is not ADD or accumulator.arg or value.dtype not in TILED_DTYPES:
        return None
    if type(value) is not Apply or value.op not in PRODUCTS:
        return None
    if steps * value.dtype.itemsize > MAX_LONG_BYTES:
        return None
    total: Expr = const(0, value.dtype)
    for step in _steps(nest):
        left, right = map(substitution(step), value.args)
        total = apply(multiply_add, (left, right, total), value.dtype, {})
    return substitution({Accumulated.make(0, value.dtype): total})(store.value)


def _steps(nest: ReduceNest | RowNest) -> list[dict[Expr, Expr]]:
    """The indices of each step, by axis."""
    axes = space_index(nest.loop, len(nest.space))
    return [
        dict(zip(axes, map(const, step), strict=True))
        for step in product(*[range(extent) for extent in nest.loop])
    ]


def _folded(
    accumulator: Accumulator, steps: list[dict[Expr, Expr]], values: Mapping[Expr, Expr]
) -> Expr | None:
    """The fold of an accumulator's values at all steps, in their order, if it is of numbers."""
    dtype = accumulator.value.dtype
    if accumulator.arg or accumulator.combiner not in _COMBINERS or is_half(dtype):
        return None
    terms = [substitution({**values, **step})(accumulator.value) for step in steps]
    op = get(accumulator.combiner.name)
    if accumulator.combiner is ADD and all(map(_may_be_negative_zero, terms)):
        terms = [const(0, dtype), *terms]  # a sum begins with 0: of negative zeros, it is 0
    total = terms[0]
    for term in terms[1:]:
        total = apply(op, (total, term), dtype, {})
    return total


def _may_be_negative_zero(expr: Expr) -> bool:
    """Whether a number may be -0.0; squares are not."""
    if expr.dtype.kind not in "fc":
        return False
    if type(expr) is not Apply or expr.dtype.kind == "c":
        return True
    first = expr.args[0]
    name = expr.op.name
    square = name == "multiply" and first is expr.args[1]
    return not square and name not in ("square", "absolute", "exp")
