"""Updates that need an order, in parallel: sorted by the element that they change.

    scatter x v i   ──▶   key    = position of each update's element; of dropped updates, beyond all
                          order  = argsort key
                          scatter x v[order] i[order]     updates of an element are consecutive

The sort is stable. So the updates of an element stay in their order, and the result has the bits of
the sequence: the thread that has the first of them makes all. Elements are independent.

Without a sort, a thread evaluates the indices of all updates one after the other: 60 ns for each,
on one H100. So few updates are not sorted, nor those in a loop that the user pins to one kernel,
which has no room for a sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import numpy as np

from lowering.plan.target.overrides import UpdateForm
from lowering.planning.expansion.scatter_order import in_any_order
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.op import Scatter
from tracegraph.ir.program import Atom, Eqn, Program, Value, application, walk
from tracegraph.ir.program import Literal as Constant
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType, row_major_strides
from tracegraph.passes.rewrite import Defs, Replacement, Rule, rewrite
from tracegraph.user_source import Source

_INDEX = ArrayType(np.dtype(np.int64))


def group_updates(
    program: Program,
    least: float,
    forced: UpdateForm | None = None,
    *,
    one_kernel_loops: bool = False,
) -> Program:
    """The program with sorts before the scatters that have `least` updates which need an order.

    Where a form is `forced`, that counts instead. Loops that are to be one kernel, which may be all
    of them, have no sorts.
    """
    if forced is not None:
        least = 2 if forced == "sorted" else inf
    if not any(_updates(eqn) >= least for eqn in walk(program.body)):
        return program
    pinned = _in_pinned_loops(program, one_kernel_loops)

    def new_rule() -> Rule:
        groupings: dict[Any, _Grouping] = {}

        def group(eqn: Eqn, defs: Defs) -> Replacement | None:
            if _updates(eqn) < least or eqn.outputs[0] in pinned:
                return None
            form = eqn.op.form
            assert isinstance(form, Scatter)
            if form.combiner is None and _is_constant(eqn.operands[1], defs):
                return None  # no order matters
            return _grouped(eqn, groupings)

        return group

    return rewrite(program, new_rule)


def _updates(eqn: Eqn) -> int:
    """The updates that need an order, or 0."""
    form = eqn.op.form
    if not isinstance(form, Scatter) or eqn.op.name == "dynamic_update_slice":
        return 0
    x, updates, *indices = (atom.type for atom in eqn.operands)
    if not x.size or not updates.size or not form.repeats(eqn.attrs, (x, updates, *indices)):
        return 0
    if in_any_order(form.combiner, x.dtype, bool(eqn.hints.in_order)):
        return 0
    return indices[0].size


def _in_pinned_loops(program: Program, every_loop: bool) -> set[Value]:
    """What is computed in loops that are to be one kernel."""
    found: set[Value] = set()
    for eqn in walk(program.body):
        if is_loop(eqn) and (every_loop or eqn.hints.schedule in ("one_kernel", "per_lane")):
            for region in eqn.regions:
                found.update(value for inner in walk(region) for value in inner.outputs)
    return found


def _is_constant(atom: Atom, defs: Defs) -> bool:
    while isinstance(atom, Value):
        eqn = defs.get(atom)
        if eqn is None or eqn.op.name not in ("broadcast_to", "reshape"):
            return False
        (atom,) = eqn.operands
    return True


@dataclass(frozen=True, slots=True)
class _Grouping:
    """The order of updates by element, and the index arrays in this order."""

    order: Value
    indices: tuple[Value, ...]


class _Emitter:
    """Equations of one user line."""

    def __init__(self, source: Source | None) -> None:
        self.eqns: list[Eqn] = []
        self._source = source

    def __call__(self, name: str, *operands: Atom, **attrs: Any) -> Value:
        self.eqns.append(application(name, operands, attrs, self._source))
        return self.eqns[-1].outputs[0]


def _grouped(eqn: Eqn, groupings: dict[Any, _Grouping]) -> Replacement:
    """The scatter of sorted updates. Scatters at the same indices share a sort."""
    x, updates, *indices = eqn.operands
    extents = [x.type.shape[axis] for axis in eqn.attrs["dims"]]
    emit = _Emitter(eqn.source)
    known = (tuple(indices), tuple(extents))
    if known not in groupings:
        groupings[known] = _grouping(emit, indices, extents)
    grouping = groupings[known]
    count, rank = indices[0].type.size, indices[0].type.ndim
    rows = emit("reshape", updates, shape=(count, *updates.type.shape[rank:]))
    rows = emit("gather", rows, grouping.order, dims=(0,))
    attrs = {name: value for name, value in eqn.attrs.items() if name != "distinct"}
    result = application(eqn.op.name, (x, rows, *grouping.indices), attrs, eqn.source)
    result = replace(result, hints=replace(eqn.hints, grouped=True))
    return Replacement(result.outputs, (*emit.eqns, result))


def _grouping(emit: _Emitter, indices: Sequence[Atom], extents: Sequence[int]) -> _Grouping:
    places = prod(extents)
    key: Value | None = None
    inside: Value | None = None
    for index, extent, stride in zip(indices, extents, row_major_strides(extents), strict=True):
        place = emit("reshape", index, shape=(index.type.size,))
        place = emit("cast", place, dtype=_INDEX.dtype)
        if index.type.dtype.kind != "u":  # a negative one counts from the end
            from_end = emit("add", place, _number(extent))
            place = emit("where", emit("less", place, _number(0)), from_end, place)
        is_positive = emit("greater_equal", place, _number(0))
        fits = emit("logical_and", is_positive, emit("less", place, _number(extent)))
        inside = fits if inside is None else emit("logical_and", inside, fits)
        part = place if stride == 1 else emit("multiply", place, _number(stride))
        key = part if key is None else emit("add", key, part)
    assert key is not None
    assert inside is not None
    key = emit("where", inside, key, _number(places))
    key = emit("cast", key, dtype=_key_dtype(places))
    order = emit("argsort", key)
    ordered = emit("gather", key, order, dims=(0,))
    if len(extents) == 1:
        return _Grouping(order, (ordered,))
    ordered = emit("cast", ordered, dtype=_INDEX.dtype)
    first, *rest = zip(extents, row_major_strides(extents), strict=True)
    found = [emit("floor_divide", ordered, _number(first[1]))]  # beyond all where it was dropped
    for extent, stride in rest:
        quotient = ordered if stride == 1 else emit("floor_divide", ordered, _number(stride))
        found.append(emit("remainder", quotient, _number(extent)))
    return _Grouping(order, tuple(found))


def _number(value: int) -> Constant:
    return Constant.of(value, _INDEX)


def _key_dtype(places: int) -> np.dtype[Any]:
    """The smallest integers that hold 0 … places: a sort takes a pass for each byte."""
    return np.min_scalar_type(places)
