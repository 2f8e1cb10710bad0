"""Folds of folds: `any(any(x, 1), 0)` is one fold over both axes.

Only if nothing else uses the inner one. Sums are then added in another order, but for those of
16-bit numbers, each of which is rounded to 16 bits.
"""

from __future__ import annotations

from collections import Counter

from tracegraph.dtypes import is_half
from tracegraph.ir.op import Reduction, get
from tracegraph.ir.program import Atom, Eqn, Program, Region, Value, walk
from tracegraph.ir.record import replace
from tracegraph.passes.rewrite import Defs, Replacement, rewrite

_MERGED = frozenset({"sum", "prod", "min", "max", "any", "all"})
_ROUNDED = frozenset({"sum", "prod"})


def merge_folds(program: Program) -> Program:
    """The program with folds of folds by the same op merged."""
    eqns = list(walk(program.body))
    if sum(eqn.op.name in _MERGED for eqn in eqns) < 2:
        return program
    uses = _uses(program.body, eqns)

    def rule(eqn: Eqn, defs: Defs) -> Replacement | None:
        return _merged(eqn, defs, uses)

    return rewrite(program, lambda: rule)


def _uses(body: Region, eqns: list[Eqn]) -> Counter[Atom]:
    """How often each value is an operand or a result."""
    regions = [body, *[region for eqn in eqns for region in eqn.regions]]
    uses: Counter[Atom] = Counter()
    for eqn in eqns:
        uses.update([atom for atom in eqn.operands if isinstance(atom, Value)])
    for region in regions:
        uses.update([atom for atom in region.results if isinstance(atom, Value)])
    return uses


def _merged(eqn: Eqn, defs: Defs, uses: Counter[Atom]) -> Replacement | None:
    if eqn.op.name not in _MERGED or not isinstance(eqn.op.form, Reduction):
        return None
    (x,) = eqn.operands
    kept = list(range(x.type.ndim))  # by axis of x: the axis of what the inner fold gives
    inner = defs.get(x) if isinstance(x, Value) and uses[x] == 1 else None
    if inner is not None and inner.op.name == "reshape":
        (y,) = inner.operands
        places = _without_ones(y.type.shape, x.type.shape)
        if places is None or not isinstance(y, Value) or uses[y] != 1:
            return None
        kept, inner = places, defs.get(y)
    if inner is None or inner.op is not eqn.op or not inner.attrs["axes"]:
        return None
    (source,) = inner.operands
    if eqn.op.name in _ROUNDED and is_half(source.type.dtype):
        return None
    own = inner.attrs["axes"]
    left = [axis for axis in range(source.type.ndim) if axis not in own]
    folded = [left[kept[axis]] for axis in eqn.attrs["axes"] if kept[axis] >= 0]
    axes = tuple(sorted((*own, *folded)))
    (out,) = eqn.outputs
    rest = tuple([source.type.shape[axis] for axis in left if axis not in folded])
    fold = replace(eqn, operands=(source,), attrs={"axes": axes})
    if rest == out.type.shape:
        return Replacement(eqn.outputs, (fold,))
    folds = Value(out.type.with_shape(rest))
    shape = {"shape": out.type.shape}  # with axes of one element that the inner fold kept
    view = replace(eqn, op=get("reshape"), operands=(folds,), attrs=shape)
    return Replacement(eqn.outputs, (replace(fold, outputs=(folds,)), view))


def _without_ones(old: tuple[int, ...], new: tuple[int, ...]) -> list[int] | None:
    """By axis of the new shape, that of the old one, -1 along axes of one element that are new;
    None if the shapes differ in other axes.
    """
    if [n for n in old if n != 1] != [n for n in new if n != 1]:
        return None
    long = iter([axis for axis, n in enumerate(old) if n != 1])
    return [next(long) if n != 1 else -1 for n in new]
