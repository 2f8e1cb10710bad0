"""Updates: scatters as maps where each point has an element of its own, else as scatter nests.

An array is copied first, and the copy is updated; where nothing reads the array afterwards, the
copy is dropped later, and the update is made in place. What the update reads of the array is then
read from the copy, if no point changes what another one reads. Otherwise an update of most of the
array writes a new one, and another update stores its values first.
"""

from __future__ import annotations

from lowering.draft.draft_nodes import node_reads
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.boxes import box_of
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, ScatterNest, Store, space_index
from lowering.plan.nests.static_places import Places
from lowering.planning.expansion.scatter_order import in_any_order, writes_one_value
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.op import Scatter, get
from tracegraph.ir.program import Eqn
from tracegraph.ir.record import record
from tracegraph.ir.scalar import Expr, both, select
from tracegraph.ir.scalar_values import Load, apply
from tracegraph.ir.subexpressions import substitution

MOST = 0.75
"""The part of an array from which an update has a point for each element of the array."""

Index = tuple[Expr, ...]


@record
class _Update:
    """What is stored at each point of a space, and where."""

    space: tuple[int, ...]
    index: Index  # of a point
    target: Index
    value: Expr
    guard: Expr | None


def update(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit a scatter, and bind its result."""
    form = eqn.op.form
    assert isinstance(form, Scatter)
    (out,) = eqn.outputs
    repeats = form.repeats(eqn.attrs, tuple(a.type for a in eqn.operands))
    buffer = builder.scratch(out.type)
    builder.bindings[out] = buffer
    made = _copied_and_updated(builder, eqn, buffer, bool(repeats))
    if made is None:
        return
    value = made.value
    if not repeats:  # each point has an element of its own: a map, which others may join
        if form.combiner is not None:
            before = Load.make(buffer, made.target, made.guard)
            value = apply(get(form.combiner.name), (before, value), out.type.dtype, {})
        builder.emit(MapNest(made.space, (Store(buffer, made.target, value, made.guard),)))
        return
    if writes_one_value(form.combiner, value):
        repeats = 0
    any_order = repeats > 0 and in_any_order(
        form.combiner, out.type.dtype, bool(eqn.hints.in_order)
    )
    grouped = repeats > 0 and bool(eqn.hints.grouped)
    store = Store(buffer, made.target, value, made.guard)
    builder.emit(
        ScatterNest(made.space, repeats, form.combiner, store, any_order=any_order, grouped=grouped)
    )


def _copied_and_updated(
    builder: RegionBuilder, eqn: Eqn, buffer: Buffer, repeats: bool
) -> _Update | None:
    """Copy the array to a buffer, and give what updates it there; None if the buffer has been
    written as a whole.
    """
    made = _update(builder, eqn)
    nodes = builder.block.nodes
    start = len(nodes)
    builder.store_value(eqn.operands[0], buffer)
    copying = nodes[start:]
    copied = set().union(*map(node_reads, copying))
    if copied.isdisjoint(load.buffer for load in loads([made.value])):
        return made
    old = None if repeats else builder.elements.buffer_of(eqn.operands[0])
    value = None if old is None else _read_from_copy(made, old, buffer)
    if value is None:
        del nodes[start:]
        if _is_mostly_replaced(builder, eqn):
            _write_whole(builder, eqn, buffer)
            return None
        # updates computed from the old array are stored first, so that it may be overwritten
        stored = builder.materialize(eqn.operands[1].type, made.value, made.index)
        value = Load.make(stored, made.index, None)
        nodes.extend(copying)
    return _Update(made.space, made.index, made.target, value, made.guard)


def _update(builder: RegionBuilder, eqn: Eqn) -> _Update:
    form = eqn.op.form
    assert isinstance(form, Scatter)
    (out,) = eqn.outputs
    _, updates, *_ = operands = builder.elements.operands(eqn)
    space = updates.type.shape
    index = space_index(space)
    value = updates[index]
    if not _has_space_of_array(builder, eqn, value):
        target, guard = form.target(index, operands, out.type, **eqn.attrs)
        return _Update(space, index, target, value, guard)
    index = space_index(out.type.shape)
    guard, inside = _window(eqn, index)
    value = _read_at_all_points(updates.at(inside, guard), index, guard)
    return _Update(out.type.shape, index, index, value, guard)


def _is_window(builder: RegionBuilder, eqn: Eqn) -> bool:
    """Whether an update replaces neighbours of each other, at a fixed place, on a device where
    windows are parts of a space.
    """
    if eqn.op.name != "scatter_set" or len(eqn.operands) != 2:
        return False
    parts = builder.context.target.fusion.parts and builder.context.fusion
    return parts and all(step == 1 for step in eqn.attrs["steps"])


def _is_mostly_replaced(builder: RegionBuilder, eqn: Eqn) -> bool:
    """Whether an update that reads the array around its places had better write a new array.

    Otherwise it writes its values to memory first, and copies them from there: twice the bytes of
    its window, instead of twice those of the rest of the array.
    """
    array, updates = (atom.type for atom in eqn.operands[:2])
    return _is_window(builder, eqn) and updates.size > array.size / 2


def _has_space_of_array(builder: RegionBuilder, eqn: Eqn, value: Expr) -> bool:
    """Whether an update of most of an array, computed from arrays of the same shape, is a map of
    all points of the array, limited to its window: so are updates of other windows.
    """
    if not _is_window(builder, eqn):
        return False
    array, updates = (atom.type for atom in eqn.operands)
    if updates.size < MOST * array.size or updates.shape[-1:] == array.shape[-1:]:
        return False
    return all(load.buffer.type.shape in ((), array.shape) for load in loads([value]))


def _window(eqn: Eqn, index: Index) -> tuple[Expr | None, Index]:
    """The guard that an index into an array is in an update's window, and the index there."""
    starts, extents = eqn.attrs["starts"], eqn.operands[1].type.shape
    window: Expr | None = None
    for place, start, extent in zip(index, starts, extents, strict=True):
        window = both(window, both(place >= start, place < start + extent))
    inside = [place - start for place, start in zip(index, starts, strict=True)]
    return window, tuple(inside)


def _write_whole(builder: RegionBuilder, eqn: Eqn, buffer: Buffer) -> None:
    """Emit the map that writes a new array: updates in their window, and what was elsewhere."""
    array, updates = builder.elements.operands(eqn)
    index = space_index(array.type.shape)
    window, inside = _window(eqn, index)
    value = updates.at(inside, window)
    if window is not None:
        value = select(window, value, array[index])
    builder.emit(MapNest(array.type.shape, (Store(buffer, index, value),)))


def _read_at_all_points(value: Expr, index: Index, guard: Expr | None) -> Expr:
    """A value that is of use where a guard holds; what it reads at the point itself is read at all
    points, so that other windows share it.
    """
    read = [load for load in loads([value]) if load.indices == index and load.guard is guard]
    made: dict[Expr, Expr] = {load: Load.make(load.buffer, index, None) for load in read}
    return substitution(made)(value) if made else value


def _read_from_copy(made: _Update, old: Buffer, new: Buffer) -> Expr | None:
    """The value with its loads of an array made from the copy that is updated; None if a point may
    read there what another one has updated.
    """
    updated = Places()
    updated.add(made.target, box_of(made.guard))
    read = [load for load in loads([made.value]) if load.buffer is old]
    if not all(updated.are_apart_from(load.indices, box_of(load.guard)) for load in read):
        return None
    copies: dict[Expr, Expr] = {load: Load.make(new, load.indices, load.guard) for load in read}
    return substitution(copies)(made.value)
