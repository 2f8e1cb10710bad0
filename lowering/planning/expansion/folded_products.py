"""Products whose columns are folded at once: of each row of a product, nothing is left but numbers.

    argmin(squares - 2 * points @ centres.T, axis=1)        the nearest of few centres

A library stores all elements of the product, and the fold reads them again. If sums are short, a
thread that has a row of the left factor in registers computes each element where it is folded: for
a million points of 16 numbers and 64 centres, nothing of 256 MB is written or read.

Several folds may be made in one pass. What needs several passes, as the log of a sum of
exponentials does, would compute the elements in each. For the same arrays that takes 321 us, and
with the library 281; the nearest centres take 111 and 307 (H100).
"""

from __future__ import annotations

from math import prod

from lowering.plan.nests.access_patterns import MANY_ROWS, MAX_SHARED
from lowering.plan.nests.tiled_products import MAX_LONG_BYTES, TILED_DTYPES
from tracegraph.ir.op import Elementwise, Reduction
from tracegraph.ir.program import Atom, Eqn, Program, Value, walk

DEPTH = 8
"""Equations on a path from a product to a fold that are followed."""


def folded_products(program: Program) -> frozenset[Atom]:
    """The products of two matrices that are used by nothing but folds along one axis, point by
    point in one pass, and are faster to compute where they are folded.
    """
    uses = _Uses(program)
    found = [eqn for eqn in uses.products if _fits(eqn)]
    return frozenset(
        [eqn.outputs[0] for eqn in found if _is_faster(eqn, uses.folded_axis(eqn.outputs[0]))]
    )


class _Uses:
    """What uses each value of a program, and what is made of folds of products."""

    def __init__(self, program: Program) -> None:
        self.products: list[Eqn] = []
        self.users: dict[Atom, list[Eqn]] = {}
        self.kept: set[Atom] = set(program.body.results)
        self.of_products: set[Atom] = set()
        self.folded: set[Atom] = set()
        self.makers: dict[Atom, Eqn] = {}
        self.axes: dict[Atom, int | None] = {}
        for eqn in walk(program.body):
            for atom in eqn.operands:
                self.users.setdefault(atom, []).append(eqn)
            self.makers.update(dict.fromkeys(eqn.outputs, eqn))
            for region in eqn.regions:
                self.kept.update(region.results)
            is_product = eqn.op.name == "matmul"
            if is_product:
                self.products.append(eqn)
            if is_product or not self.of_products.isdisjoint(eqn.operands):
                self.of_products.update(eqn.outputs)
                is_fold = isinstance(eqn.op.form, Reduction)
                if is_fold or not self.folded.isdisjoint(eqn.operands):
                    self.folded.update(eqn.outputs)

    def folded_axis(self, value: Value, depth: int = DEPTH) -> int | None:
        """The axis along which all uses of a value fold it; None if there is no such axis."""
        if value not in self.axes:
            found = {self._axis_of(eqn, value, depth - 1) for eqn in self.users.get(value, ())}
            is_one = len(found) == 1 and value not in self.kept
            self.axes[value] = found.pop() if is_one else None
        return self.axes[value]

    def _axis_of(self, eqn: Eqn, value: Value, depth: int) -> int | None:
        form = eqn.op.form
        if isinstance(form, Reduction):
            along = eqn.attrs["axes"]
            return int(along[0]) if len(along) == 1 else None
        if not isinstance(form, Elementwise) or not depth:
            return None
        (out,) = eqn.outputs
        if out.type.shape != value.type.shape:
            return None
        others = [atom for atom in eqn.operands if atom is not value]
        is_there = all(self._is_there(atom, depth) for atom in others)
        return self.folded_axis(out, depth) if is_there else None

    def _is_there(self, other: Atom, depth: int) -> bool:
        """Whether an operand is there before the folds, and is no matrix that has to be read."""
        if other in self.folded:
            return False
        if 1 in (1, 1, *other.type.shape)[-2:]:
            return True
        maker = self.makers.get(other)
        if maker is None or not isinstance(maker.op.form, Elementwise) or not depth:
            return False
        return all(self._is_there(atom, depth - 1) for atom in maker.operands)


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
