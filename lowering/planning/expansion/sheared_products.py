"""Sums over windows of products, as products of sheared factors: derivatives of convolutions.

The cotangent of an array of which windows were multiplied is a product, padded, sheared along each
axis of windows, and summed:

    sum over i of shear(pad(x y))[p, i]   =   sum over i, k of shear(pad(x))[p, i, k] * y[k, i]

So the views are those of the factors, and there is one sum. It is computed by tiles, from factors
in place, and neither windows nor their cotangents are in memory.

A factor has the axes of the sums in front, and then those of the product. It is of extent 1 along
axes on which it does not depend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any

from lowering.plan.nests.tiled_products import MIN_SIDE, MIN_TILED, TILED_DTYPES, multiply_tf32
from lowering.planning.expansion.contractions import most_channels, product_of
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Value, application, walk
from tracegraph.ir.record import replace
from tracegraph.ops.arithmetic import multiply
from tracegraph.ops.shape import equal_products
from tracegraph.passes.dce import dce
from tracegraph.passes.rewrite import Defs, Replacement, by_name, rewrite
from tracegraph.passes.views import compose_views
from tracegraph.user_source import Source

Ints = tuple[int, ...]

_VIEWS = frozenset({"reshape", "transpose", "pad", "shear"})


def sum_sheared_products(program: Program) -> Program:
    """The program with such sums of products that nothing else uses."""
    names = {eqn.op.name for eqn in walk(program.body)}
    if not {"matmul", "shear"} <= names:
        return program
    uses: Counter[Atom] = Counter(program.body.results)
    for eqn in walk(program.body):
        uses.update(eqn.operands)
        for region in eqn.regions:
            uses.update(region.results)

    def summed(eqn: Eqn, defs: Defs) -> Replacement | None:
        return _as_one(eqn, defs, uses)

    found = rewrite(program, lambda: by_name({"sum": summed}))
    return program if found is program else compose_views(dce(found))


def _as_one(eqn: Eqn, defs: Defs, uses: Counter[Atom]) -> Replacement | None:
    views: list[Eqn] = []
    x = eqn.operands[0]
    while True:
        source = defs.get(x) if isinstance(x, Value) else None
        if source is None or uses[x] > 1:
            return None
        if source.op.name not in _VIEWS:
            break
        views.append(source)
        x = source.operands[0]
    if not any(view.op.name == "shear" for view in views):
        return None
    shape = source.outputs[0].type.shape
    if 0 in shape:
        return None
    if source.op.name == "matmul" and views[-1].op.name == "reshape":
        shape = views.pop().attrs["shape"]  # undoes what joined the axes of factors
    factors = _factors(source, shape, defs, eqn.source)
    if factors is None:
        return None
    for view in reversed(views):
        shape_before, shape = shape, view.outputs[0].type.shape
        if not all(factor.apply(view, shape_before) for factor in factors):
            return None
    axes = eqn.attrs["axes"]
    left, right = factors
    for factor in factors:
        factor.sum_over(axes)
    sides = [prod(f.shape[f.summed :]) for f in factors]
    steps = prod(max(pair) for pair in zip(*(f.shape[: f.summed] for f in factors), strict=True))
    if min(sides) < MIN_SIDE or eqn.outputs[0].type.size * steps < MIN_TILED:
        return None
    products = product_of(left.atom, right.atom, left.precision, eqn.source)
    total = application("sum", products.outputs, {"axes": tuple(range(left.summed))}, eqn.source)
    total = replace(total, outputs=eqn.outputs)  # whose uses are known
    return Replacement(eqn.outputs, (*left.eqns, *right.eqns, products, total))


@dataclass(slots=True)
class _Factor:
    """A factor under construction, with the equations that make it."""

    atom: Atom
    summed: int
    source: Source | None
    precision: str | None
    eqns: list[Eqn] = field(default_factory=list)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the factor."""
        return self.atom.type.shape

    def emit(self, name: str, *operands: Atom, **attrs: Any) -> None:
        """Apply an op to the factor."""
        self.eqns.append(application(name, (self.atom, *operands), attrs, self.source))
        (self.atom,) = self.eqns[-1].outputs

    def apply(self, view: Eqn, shape: tuple[int, ...]) -> bool:
        """Apply a view of the product, whose shape is given; whether that is possible."""
        own, known = self.shape[self.summed :], self.summed
        if view.op.name == "transpose":
            axes = [known + axis for axis in view.attrs["axes"]]
            self.emit("transpose", axes=(*range(known), *axes))
        elif view.op.name == "reshape":
            return self._reshape(shape, view.attrs["shape"])
        elif view.op.name == "pad":
            value = view.operands[1]
            if not isinstance(value, Literal) or value.value != 0:
                return False
            low, high = (
                tuple([0 if n == 1 != whole else width for n, whole, width in zip(
                    own, shape, view.attrs[side], strict=True)])
                for side in ("low", "high")
            )  # fmt: skip
            none = (0,) * known
            if any((*low, *high)):
                self.emit("pad", value, low=(*none, *low), high=(*none, *high))
        else:
            self._shear(view, shape)
        return True

    def _reshape(self, old: tuple[int, ...], new: tuple[int, ...]) -> bool:
        """Reshape the axes of the product, of which joined ones must be alike in the factor."""
        found = _reshaped(self.shape[self.summed :], old, new)
        if found is not None:
            self.emit("reshape", shape=(*self.shape[: self.summed], *found))
        return found is not None

    def _shear(self, view: Eqn, shape: tuple[int, ...]) -> None:
        axis = self.summed + view.attrs["axis"]
        if self.shape[axis] == 1 != shape[view.attrs["axis"]]:
            return  # all elements along the axis are the same
        if self.shape[-1] != shape[-1]:
            self.emit("broadcast_to", shape=(*self.shape[:-1], shape[-1]))
        self.emit("shear", axis=axis, reverse=view.attrs["reverse"])

    def sum_over(self, axes: Sequence[int]) -> None:
        """Move axes of the product to those of the sum."""
        own = [self.summed + axis for axis in axes]
        rest = [axis for axis in range(self.summed, len(self.shape)) if axis not in own]
        self.emit("transpose", axes=(*range(self.summed), *own, *rest))
        self.summed += len(own)


def _reshaped(own: Ints, old: Ints, new: Ints) -> Ints | None:
    """The extents of a factor of an array that is reshaped; None if they are not alike along axes
    that are joined.
    """
    found = [1] * len(new)
    for before, after in equal_products(old, new):
        constant = [own[axis] == 1 for axis in before]
        if any(constant) and not all(constant):
            return None
        if not any(constant):
            for axis in after:
                found[axis] = new[axis]
    return tuple(found)


def _factors(
    source: Eqn, shape: Ints, defs: Defs, line: Source | None
) -> tuple[_Factor, _Factor] | None:
    """The factors of a product, or of one that this pass has made before, for a product that is
    reshaped.
    """
    if source.outputs[0].type.dtype not in TILED_DTYPES:
        return None
    if source.op.name == "matmul":
        x, y = source.operands
        *batch, m, k = x.type.shape
        if k > most_channels(x.type.dtype):
            return None
        n, rank = y.type.shape[-1], len(batch)
        old = (*batch, m, n)
        rows, columns = (_reshaped(own, old, shape) for own in ((*batch, m, 1), (*batch, 1, n)))
        if rows is None or columns is None:
            return None
        left, right = (_Factor(each, 1, line, source.attrs.get("precision")) for each in (x, y))
        left.emit("reshape", shape=(*rows, k))
        left.emit("transpose", axes=(len(rows), *range(len(rows))))
        right.emit("transpose", axes=(rank, *range(rank), rank + 1))
        right.emit("reshape", shape=(k, *columns))
        return left, right
    operand = source.operands[0] if source.op.name == "sum" else None
    products = defs.get(operand) if isinstance(operand, Value) else None
    axes = source.attrs.get("axes", ())
    if (
        products is None
        or products.op not in (multiply, multiply_tf32)
        or axes != tuple(range(len(axes)))
    ):
        return None
    if len({atom.type.ndim for atom in products.operands}) != 1:
        return None
    x, y = products.operands
    precision = "tf32" if products.op is multiply_tf32 else None
    left, right = (_Factor(each, len(axes), line, precision) for each in (x, y))
    return left, right
