"""Region -> Block: nests, library calls and conditionals for the equations of a region."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter

from lowering.draft.context import Context
from lowering.draft.draft import Draft
from lowering.draft.draft_nodes import Block, DraftKernel, DraftNode, node_reads
from lowering.plan.construct import Path
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.boxes import box_of
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    ReduceNest,
    ScanNest,
    ScatterNest,
    SetCondition,
    Signal,
    Store,
    space_index,
)
from lowering.plan.nests.static_places import Places
from lowering.planning.elements import Binding, CapturedValue, Elements
from lowering.planning.expansion.scatter_order import in_any_order, writes_one_value
from lowering.planning.materialize import choose_materialized, materialize_all
from tracegraph.ir.op import (
    Combiner,
    Control,
    Effect,
    Elementwise,
    Indexed,
    Opaque,
    Reduction,
    Scan,
    Scatter,
    get,
)
from tracegraph.ir.program import Atom, Eqn, Program, Region, Value
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr, both, select
from tracegraph.ir.scalar_values import Load, apply
from tracegraph.ir.subexpressions import substitution
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source

MOST = 0.75
"""The part of an array from which an update has a point for each element of the array."""

Index = tuple[Expr, ...]


class RegionBuilder:
    """Builds the block of one region.

    `bind` says where parameters come from. `sinks` are the buffers of the results; further results
    are conditions. A launch is expected to run the region `runs` times. It is the body of a loop or
    branch unless it `is_top`.
    """

    def __init__(
        self,
        context: Context,
        region: Region,
        bind: Mapping[Value, Binding],
        sinks: Sequence[Buffer],
        runs: int = 1,
        *,
        is_top: bool = False,
    ) -> None:
        self.context = context
        self.is_top = is_top
        self.runs = runs
        self.region = region
        self.sinks = sinks
        self.block = Block(sinks=tuple(sinks))
        materialization = (
            choose_materialized(region, len(sinks), context.costs)
            if context.fusion
            else materialize_all(region)
        )
        self.materialized = materialization.materialized
        self.is_single_kernel = materialization.is_single_kernel
        self.elements = Elements(bind, materialization.fused_reductions)
        self.bindings = self.elements.bindings
        self.sources: tuple[Source, ...] = ()  # the user's lines that the next nodes come from
        self.within: tuple[Path, ...] = ()  # the unrolled loops of these lines
        self.in_sinks = _stored_in_sinks(region, sinks, self.materialized)

    def build(self) -> Block:
        """The block: materialized values in the order of equations, then sinks."""
        single = self.is_single_kernel
        if single:
            self._set_origin(self.region.eqns)
        for eqn in self.region.eqns:
            if not single:
                self._set_origin((eqn,))
            self._equation(eqn)
        for atom, buffer in zip(self.region.results, self.sinks, strict=False):
            if not isinstance(atom, Value) or self.in_sinks.get(atom) is not buffer:
                inlined = self.bindings.get(atom) if isinstance(atom, Value) else None
                if isinstance(inlined, Eqn) and not single:
                    self._set_origin((inlined,))
                self.store_value(atom, buffer)
        return self.block

    def _set_origin(self, eqns: Sequence[Eqn]) -> None:
        """Set the lines, and the unrolled loops, that the next nodes come from."""
        if len(eqns) == 1:  # most
            source = eqns[0].source
            self.sources = () if source is None else (source,)
            self.within = () if source is None or not source.within else (source.within,)
            return
        sources = dict.fromkeys([eqn.source for eqn in eqns if eqn.source is not None])
        self.sources = tuple(sources)
        self.within = tuple(dict.fromkeys([s.within for s in sources if s.within]))

    def inside(
        self,
        region: Region,
        own: Mapping[Value, Binding],
        captured: Sequence[Atom],
        sinks: Sequence[Buffer],
        steps: int = 1,
    ) -> RegionBuilder:
        """A builder for a region inside this one, which each run of this one runs `steps` times.

        Its first parameters are bound to `own`; the others are captured values of this region.
        """
        captures = zip(region.params[len(own) :], captured, strict=True)
        bind = {**own, **{param: CapturedValue(self.elements, atom) for param, atom in captures}}
        return RegionBuilder(self.context, region, bind, sinks, self.runs * steps)

    # -- nests -------------------------------------------------------------------------------------

    def scratch(self, type_: ArrayType) -> Buffer:
        """A new scratch buffer that belongs to the region."""
        buffer = self.context.buffer("scratch", type_)
        self.block.owned.add(buffer)
        return buffer

    def result(self, eqn: Eqn) -> Buffer:
        """A new scratch buffer for the only result of an equation."""
        (buffer,) = self.results(eqn)
        return buffer

    def results(self, eqn: Eqn) -> tuple[Buffer, ...]:
        """A new scratch buffer for each result of an equation."""
        buffers = tuple([self.scratch(out.type) for out in eqn.outputs])
        self.bindings.update(zip(eqn.outputs, buffers, strict=True))
        return buffers

    def emit(self, nest: Nest) -> None:
        """Append a kernel of one nest, unless it has no points."""
        if all(nest.space):
            self.block.nodes.append(DraftKernel([nest], self.sources, self.within))

    def set_condition(self, atom: Atom, condition: int) -> None:
        """Emit the nest that sets a condition to a scalar."""
        self.signal(atom, partial(SetCondition, condition))

    def signal(self, atom: Atom, signal: Callable[[Expr], Signal]) -> None:
        """Emit the nest that evaluates a scalar and signals it."""
        self.store_value(atom, None, signal)

    def store_value(
        self,
        atom: Atom,
        buffer: Buffer | None,
        signal: Callable[[Expr], Signal] | None = None,
        eqn: Eqn | None = None,
    ) -> None:
        """Emit the nest that evaluates a value at every point, and stores or signals it.

        With `eqn`, the value is computed by it; else it may be in memory already.
        """
        shape = atom.type.shape
        index = space_index(shape)
        value, accumulators, loop = self.elements.evaluate(atom, index, eqn)
        stores = () if buffer is None else (Store(buffer, index, value),)
        signals = () if signal is None else (signal(value),)
        if accumulators:
            self.emit(ReduceNest(shape, loop, accumulators, stores, signals))
        else:
            self.emit(MapNest(shape, stores, signals))

    # -- equations ---------------------------------------------------------------------------------

    def _equation(self, eqn: Eqn) -> None:
        match eqn.op.form:
            case Elementwise() | Indexed() | Reduction() as form:
                (out,) = eqn.outputs
                if isinstance(form, Indexed) and len(eqn.operands) > self.context.sources:
                    self.context.sources = len(eqn.operands)
                if out in self.materialized:
                    buffer = self.in_sinks.get(out) or self.scratch(out.type)
                    self.store_value(out, buffer, eqn=eqn)
                    self.bindings[out] = buffer
                else:
                    self.bindings[out] = eqn
            case Scan(combiner=combiner):
                self._scan(eqn, combiner)
            case Scatter():
                self._scatter(eqn)
            case Opaque() | Control() | Effect():
                self._by_rule(eqn)

    def _by_rule(self, eqn: Eqn) -> None:
        rule = self.context.rules.get(eqn.op.name)
        if rule is None:
            raise NotImplementedError(
                f"no planning rule for the op {eqn.op.name!r}, whose form is "
                f"{type(eqn.op.form).__name__}: add one to lowering.planning.rules.RULES"
            )
        rule(self, eqn)

    def _scan(self, eqn: Eqn, combiner: Combiner) -> None:
        (out,) = eqn.outputs
        buffer = self.scratch(out.type)
        index = space_index(out.type.shape)
        store = Store(buffer, index, self.elements.element(eqn.operands[0], index, None))
        self.emit(ScanNest(out.type.shape, eqn.attrs["axis"], combiner, store))
        self.bindings[out] = buffer

    def _scatter(self, eqn: Eqn) -> None:
        form = eqn.op.form
        assert isinstance(form, Scatter)
        (out,) = eqn.outputs
        _, updates, *_ = operands = self.elements.operands(eqn)
        index = space_index(updates.type.shape)
        value = updates[index]
        target, guard = form.target(index, operands, out.type, **eqn.attrs)
        space = updates.type.shape
        if self._has_space_of_array(eqn, value):
            space = out.type.shape
            index = target = space_index(out.type.shape)
            guard, inside = self._window(eqn, index)
            value = _read_at_all_points(updates.at(inside, guard), index, guard)
        repeats = form.repeats(eqn.attrs, tuple(a.type for a in eqn.operands))
        buffer = self.scratch(out.type)
        start = len(self.block.nodes)
        self.store_value(eqn.operands[0], buffer)
        copying = self.block.nodes[start:]
        copied = set().union(*map(node_reads, copying))
        if not copied.isdisjoint(load.buffer for load in loads([value])):
            old = None if repeats else self.elements.buffer_of(eqn.operands[0])
            in_place = None if old is None else _read_from(value, old, buffer, target, guard)
            if in_place is None and self._is_mostly_replaced(eqn):
                del self.block.nodes[start:]
                self._write_whole(eqn, buffer)
                self.bindings[out] = buffer
                return
            if in_place is None:
                # updates computed from the old array are stored first, so that it may be
                # overwritten
                del self.block.nodes[start:]
                value = Load.make(self.materialize(updates.type, value, index), index, None)
                self.block.nodes.extend(copying)
            else:
                value = in_place
        if not repeats:  # each point has an element of its own: a map, which others may join
            if form.combiner is not None:
                before = Load.make(buffer, target, guard)
                value = apply(get(form.combiner.name), (before, value), out.type.dtype, {})
            self.emit(MapNest(space, (Store(buffer, target, value, guard),)))
            self.bindings[out] = buffer
            return
        if writes_one_value(form.combiner, value):
            repeats = 0
        store = Store(buffer, target, value, guard)
        any_order = repeats > 0 and in_any_order(
            form.combiner, out.type.dtype, bool(eqn.hints.in_order)
        )
        grouped = repeats > 0 and bool(eqn.hints.grouped)
        nest = ScatterNest(
            updates.type.shape, repeats, form.combiner, store, any_order=any_order, grouped=grouped
        )
        self.emit(nest)
        self.bindings[out] = buffer

    def _is_mostly_replaced(self, eqn: Eqn) -> bool:
        """Whether an update that reads the array around its places had better write a new array.

        Otherwise it writes its values to memory first, and copies them from there: twice the bytes
        of its window, instead of twice those of the rest of the array.
        """
        array, updates = (atom.type for atom in eqn.operands[:2])
        return self._is_window(eqn) and updates.size > array.size / 2

    def _has_space_of_array(self, eqn: Eqn, value: Expr) -> bool:
        """Whether an update of most of an array, computed from arrays of the same shape, is a map
        of all points of the array, limited to its window: so are updates of other windows.
        """
        if not self._is_window(eqn):
            return False
        array, updates = (atom.type for atom in eqn.operands)
        if updates.size < MOST * array.size or updates.shape[-1:] == array.shape[-1:]:
            return False
        return all(load.buffer.type.shape in ((), array.shape) for load in loads([value]))

    def _is_window(self, eqn: Eqn) -> bool:
        """Whether an update replaces neighbours of each other, at a fixed place, on a device where
        windows are parts of a space.
        """
        if eqn.op.name != "scatter_set" or len(eqn.operands) != 2:
            return False
        parts = self.context.target.fusion.parts and self.context.fusion
        return parts and all(step == 1 for step in eqn.attrs["steps"])

    def _window(self, eqn: Eqn, index: Index) -> tuple[Expr | None, Index]:
        """The guard that an index into an array is in an update's window, and the index there."""
        starts, extents = eqn.attrs["starts"], eqn.operands[1].type.shape
        window: Expr | None = None
        for place, start, extent in zip(index, starts, extents, strict=True):
            window = both(window, both(place >= start, place < start + extent))
        inside = [place - start for place, start in zip(index, starts, strict=True)]
        return window, tuple(inside)

    def _write_whole(self, eqn: Eqn, buffer: Buffer) -> None:
        """Emit the map that writes a new array: updates in their window, and what was elsewhere."""
        array, updates = self.elements.operands(eqn)
        index = space_index(array.type.shape)
        window, inside = self._window(eqn, index)
        value = updates.at(inside, window)
        if window is not None:
            value = select(window, value, array[index])
        self.emit(MapNest(array.type.shape, (Store(buffer, index, value),)))

    # -- for planning rules ------------------------------------------------------------------------

    def element(self, atom: Atom, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        """One element of a value, as an expression of the index."""
        return self.elements.element(atom, index, guard)

    def materialize(self, type_: ArrayType, value: Expr, index: tuple[Expr, ...]) -> Buffer:
        """A new scratch buffer that holds an expression's value at every point of a shape."""
        buffer = self.scratch(type_)
        self.emit(MapNest(type_.shape, (Store(buffer, index, value),)))
        return buffer

    def add(self, node: DraftNode) -> None:
        """Append a finished node."""
        self.block.nodes.append(node)


def build(program: Program, context: Context, donated: Sequence[int]) -> Draft:
    """The draft of a program: a block for each region, nothing scheduled or fused yet."""
    body = program.body
    if program.effects:
        body = replace(body, results=body.results[:-1])  # the token is not returned
    n_inputs = len(program.inputs)
    inputs = tuple([context.buffer("input", p.type) for p in body.params[:n_inputs]])
    constants = tuple([context.buffer("const", p.type) for p in body.params[n_inputs:]])
    outputs = tuple([context.buffer("output", atom.type) for atom in body.results])
    bind: dict[Value, Binding] = dict(zip(body.params, (*inputs, *constants), strict=True))
    block = RegionBuilder(context, body, bind, outputs, is_top=True).build()
    return Draft(program, context, block, inputs, constants, outputs, donated)


def _read_at_all_points(value: Expr, index: Index, guard: Expr | None) -> Expr:
    """A value that is of use where a guard holds; what it reads at the point itself is read at all
    points, so that other windows share it.
    """
    read = [load for load in loads([value]) if load.indices == index and load.guard is guard]
    made: dict[Expr, Expr] = {load: Load.make(load.buffer, index, None) for load in read}
    return substitution(made)(value) if made else value


def _read_from(
    value: Expr, old: Buffer, new: Buffer, place: Index, guard: Expr | None
) -> Expr | None:
    """The value with its loads of an array made from the copy that is updated at a place; None if
    a point may read there what another one has updated.
    """
    updated = Places()
    updated.add(place, box_of(guard))
    read = [load for load in loads([value]) if load.buffer is old]
    if not all(updated.are_apart_from(load.indices, box_of(load.guard)) for load in read):
        return None
    made: dict[Expr, Expr] = {load: Load.make(new, load.indices, load.guard) for load in read}
    return substitution(made)(value)


_IN_KERNELS = frozenset({Elementwise, Indexed, Reduction})
_form = attrgetter("op.form")


def _stored_in_sinks(
    region: Region, sinks: Sequence[Buffer], materialized: Collection[Value]
) -> dict[Value, Buffer]:
    """The materialized values of a region of kernels that are computed in a sink, without a copy.

    Where library calls or bodies access the values, they may have to stay in scratch, which
    `drop_copies` decides.
    """
    if not _IN_KERNELS.issuperset(map(type, map(_form, region.eqns))):
        return {}
    found: dict[Value, Buffer] = {}
    for atom, sink in zip(region.results, sinks, strict=False):
        if isinstance(atom, Value) and atom in materialized:
            found.setdefault(atom, sink)
    return found
