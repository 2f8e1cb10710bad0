"""Products whose columns are folded at once: of each row of a product, nothing is left but numbers.

    argmin(squares - 2 * points @ centres.T, axis=1)        the nearest of few centres

A library stores all elements of the product, and the fold reads them again. If sums are short, a
thread that has a row of the left factor in registers computes each element where it is folded: for
a million points of 16 numbers and 64 centres, nothing of 256 MB is written or read.
"""

from __future__ import annotations

from math import prod

from lowering.plan.nests.access_patterns import MANY_ROWS, MAX_SHARED
from lowering.plan.nests.tiled_products import MAX_LONG_BYTES, TILED_DTYPES
from tracegraph.ir.op import Elementwise, Reduction
from tracegraph.ir.program import Atom, Eqn, Program, Value, walk


def folded_products(program: Program) -> frozenset[Atom]:
    """The products of two matrices that are used by nothing but folds along one axis, point by
    point, and are faster to compute where they are folded.
    """
    users: dict[Atom, list[Eqn]] = {}
    kept: set[Atom] = set(program.body.results)
    products: list[Eqn] = []
    for eqn in walk(program.body):
        for atom in eqn.operands:
            users.setdefault(atom, []).append(eqn)
        for region in eqn.regions:
            kept.update(region.results)
        if eqn.op.name == "matmul":
            products.append(eqn)
    axes: dict[Atom, int | None] = {}

    def folded_axis(value: Value) -> int | None:
        """The axis along which all uses of a value fold it; None if there is no such axis."""
        if value not in axes:
            axes[value] = None  # not more than once for each value
            found = {_axis_of(eqn, value) for eqn in users.get(value, ())}
            axes[value] = found.pop() if len(found) == 1 and value not in kept else None
        return axes[value]

    def _axis_of(eqn: Eqn, value: Value) -> int | None:
        form = eqn.op.form
        if isinstance(form, Reduction):
            along = eqn.attrs["axes"]
            return int(along[0]) if len(along) == 1 else None
        (out, *_) = eqn.outputs or (None,)
        if isinstance(form, Elementwise) and out is not None and out.type.shape == value.type.shape:
            return folded_axis(out)
        return None

    found = [eqn for eqn in products if _fits(eqn)]
    return frozenset(
        [eqn.outputs[0] for eqn in found if _is_faster(eqn, folded_axis(eqn.outputs[0]))]
    )


def _fits(eqn: Eqn) -> bool:
    """Whether a row of a factor can be in the registers of a thread."""
    left, right = (atom.type for atom in eqn.operands)
    if left.ndim != 2 or right.ndim != 2 or left.dtype not in TILED_DTYPES:
        return False
    return 0 < left.shape[1] * left.dtype.itemsize <= MAX_LONG_BYTES


def _is_faster(eqn: Eqn, axis: int | None) -> bool:
    """Whether there are enough rows for all threads, and what they share is in a near cache."""
    if axis is None:
        return False
    left, right = (atom.type for atom in eqn.operands)
    shared = right if axis == 1 else left
    rows = eqn.outputs[0].type.shape[1 - axis]
    return rows >= MANY_ROWS and 0 < prod(shared.shape) * shared.dtype.itemsize <= MAX_SHARED
