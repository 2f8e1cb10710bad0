"""Region -> Block: kernels' nests, library calls and conditionals for the equations of a region."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import attrgetter

from lowering.draft.context import Context
from lowering.draft.draft import Draft
from lowering.draft.stage import Block, KernelStage, Stage, stage_reads
from lowering.plan.buffer import Buffer
from lowering.plan.construct import Path
from lowering.plan.kernel import (
    Accumulator,
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
from lowering.plan.nest_analysis import loads
from lowering.planning import materialize as group
from tracegraph.ir import scalar, scalar_values
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
)
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.record import record, replace
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Accumulated, Load
from tracegraph.ir.types import ArrayType
from tracegraph.user_source import Source


@record
class Captured:
    """A region parameter that stands for a value of the region around."""

    builder: RegionBuilder
    atom: Atom


Binding = Buffer | Captured | Eqn
"""Where a value comes from: memory, the region around, or its equation, inlined."""


@record
class _Operand:
    """An operand as element rules see it."""

    builder: RegionBuilder
    atom: Atom
    guard: Expr | None

    @property
    def type(self) -> ArrayType:
        return self.atom.type

    def __getitem__(self, index: tuple[Expr, ...]) -> Expr:
        return self.builder.element(self.atom, index, self.guard)

    def at(self, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        return self.builder.element(self.atom, index, scalar.both(self.guard, guard))


class RegionBuilder:
    """Builds the block of one region.

    `bind` says where parameters come from; `sinks` are the buffers that results go to.
    """

    def __init__(
        self,
        context: Context,
        region: Region,
        bind: Mapping[Value, Binding],
        sinks: Sequence[Buffer],
    ) -> None:
        self.context = context
        self.region = region
        self.sinks = sinks
        self.block = Block(sinks=tuple(sinks))
        self.grouping = (
            group.group(region, len(sinks), context.costs)
            if context.fusion
            else group.apart(region)
        )
        self.bindings: dict[Value, Binding] = dict(bind)
        self.memo: dict[tuple[Atom, tuple[Expr, ...], Expr | None], Expr] = {}
        self.accumulators: list[Accumulator] | None = None
        self.accumulated: dict[Value, Accumulated] = {}
        self.sources: tuple[Source, ...] = ()  # the user's lines that what is added comes from
        self.within: tuple[Path, ...] = ()  # the unrolled loops that it comes from
        self.places = _places(region, sinks, self.grouping.stored)

    def build(self) -> Block:
        """The block: nests of stored values, in the order of their equations, then the sinks'."""
        one_kernel = self.grouping.is_one_kernel
        if one_kernel:
            self._come_from(self.region.eqns)
        for eqn in self.region.eqns:
            if not one_kernel:
                self._come_from((eqn,))
            self._equation(eqn)
        for atom, buffer in zip(self.region.results, self.sinks, strict=False):
            if not isinstance(atom, Value) or self.places.get(atom) is not buffer:
                inlined = self.bindings.get(atom) if isinstance(atom, Value) else None
                if isinstance(inlined, Eqn) and not one_kernel:
                    self._come_from((inlined,))
                self.store_value(atom, buffer)
        return self.block

    def _come_from(self, eqns: Sequence[Eqn]) -> None:
        """Note the lines, and the unrolled loops, that the next stages come from."""
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
    ) -> RegionBuilder:
        """A builder for a region in this one.

        Its first parameters are bound to what is its `own`, the others stand for values of this.
        """
        captures = zip(region.params[len(own) :], captured, strict=True)
        bind = {**own, **{param: Captured(self, atom) for param, atom in captures}}
        return RegionBuilder(self.context, region, bind, sinks)

    # -- elements
    # -------------------------------------------------------------------------------------

    def element(self, atom: Atom, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        """One element of a value, as an expression of the index."""
        if isinstance(atom, Literal):
            return scalar.const(atom.value, atom.type.dtype)
        binding = self.bindings[atom]
        if isinstance(binding, Buffer):
            return Load.make(binding, index, guard)
        if isinstance(binding, Captured):
            return binding.builder.element(binding.atom, index, guard)
        return self._inlined(atom, binding, index, guard)

    def _inlined(self, value: Value, eqn: Eqn, index: tuple[Expr, ...], guard: Expr | None) -> Expr:
        if value in self.grouping.fused:
            return self._accumulate(value, eqn)
        key = (value, index, guard)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._formed(value.type, eqn, index, guard)
        return found

    def _formed(
        self, out: ArrayType, eqn: Eqn, index: tuple[Expr, ...], guard: Expr | None
    ) -> Expr:
        if 0 in out.shape:
            return scalar.const(0, out.dtype)  # never reached: an empty array has no elements
        match eqn.op.form:
            case Elementwise():
                args = tuple(
                    [self.element(a, _aligned(a.type.shape, index), guard) for a in eqn.operands]
                )
                return scalar_values.apply(eqn.op, args, out.dtype, eqn.attrs)
            case Indexed(element=element):
                return element(index, self._operands(eqn, guard), out, **eqn.attrs)
        raise AssertionError(f"{eqn.op.name} is never inlined")

    def _operands(self, eqn: Eqn, guard: Expr | None = None) -> list[_Operand]:
        return [_Operand(self, a, guard) for a in eqn.operands]

    def _accumulate(self, value: Value, eqn: Eqn) -> Expr:
        """A fused reduction: an accumulator of the nest under construction."""
        assert self.accumulators is not None
        if value not in self.accumulated:
            self.accumulators.append(self._accumulator(eqn))
            number = len(self.accumulators) - 1
            self.accumulated[value] = Accumulated.make(number, value.type.dtype)
        return self.accumulated[value]

    def _accumulator(self, eqn: Eqn) -> Accumulator:
        form = eqn.op.form
        assert isinstance(form, Reduction)
        (source,) = eqn.operands
        shape, axes = source.type.shape, eqn.attrs["axes"]
        kept = [n for a, n in enumerate(shape) if a not in axes]
        space = iter(space_index(tuple(kept)))
        loop = iter(space_index(tuple([shape[a] for a in axes]), first=len(kept)))
        index = tuple([next(loop) if a in axes else next(space) for a in range(len(shape))])
        return Accumulator(form.combiner, self.element(source, index, None), form.arg)

    # -- nests
    # ----------------------------------------------------------------------------------------

    def scratch(self, type_: ArrayType) -> Buffer:
        """A new scratch buffer that belongs to the region."""
        buffer = self.context.buffer("scratch", type_)
        self.block.owned.add(buffer)
        return buffer

    def result(self, eqn: Eqn) -> Buffer:
        """A new scratch buffer for the only result of an equation."""
        (out,) = eqn.outputs
        self.bindings[out] = buffer = self.scratch(out.type)
        return buffer

    def emit(self, nest: Nest) -> None:
        """Append a kernel of one nest, unless it has no points."""
        if all(nest.space):
            self.block.stages.append(KernelStage([nest], self.sources, self.within))

    def set_condition(self, atom: Atom, condition: int) -> None:
        """The nest that sets a condition to a scalar."""
        self.signal(atom, partial(SetCondition, condition))

    def signal(self, atom: Atom, signal: Callable[[Expr], Signal]) -> None:
        """The nest that evaluates a scalar and makes a signal of it."""
        self.store_value(atom, None, signal)

    def store_value(
        self,
        atom: Atom,
        buffer: Buffer | None,
        signal: Callable[[Expr], Signal] | None = None,
        eqn: Eqn | None = None,
    ) -> None:
        """The nest that evaluates a value at every point, and stores it or makes a signal of it."""
        shape = atom.type.shape
        index = space_index(shape)
        self.accumulators, self.accumulated = [], {}
        if eqn is None:
            value = self.element(atom, index, None)
        elif isinstance(eqn.op.form, Reduction):
            self.accumulators.append(self._accumulator(eqn))
            value = Accumulated.make(0, atom.type.dtype)
        else:
            value = self._formed(atom.type, eqn, index, None)
        stores = () if buffer is None else (Store(buffer, index, value),)
        signals = () if signal is None else (signal(value),)
        accumulators, self.accumulators = tuple(self.accumulators), None
        if accumulators:
            loop = self._loop_of(atom, eqn)
            self.emit(ReduceNest(shape, loop, accumulators, stores, signals))
        else:
            self.emit(MapNest(shape, stores, signals))

    def _loop_of(self, atom: Atom, eqn: Eqn | None) -> tuple[int, ...]:
        if eqn is None or not isinstance(eqn.op.form, Reduction):
            reduced = next(iter(self.accumulated))
            binding = self.bindings[reduced]
            assert isinstance(binding, Eqn)
            eqn = binding
        shape = eqn.operands[0].type.shape
        return tuple([shape[a] for a in eqn.attrs["axes"]])

    # -- equations
    # ------------------------------------------------------------------------------------

    def _equation(self, eqn: Eqn) -> None:
        match eqn.op.form:
            case Elementwise() | Indexed() | Reduction():
                (out,) = eqn.outputs
                if out in self.grouping.stored:
                    buffer = self.places.get(out) or self.scratch(out.type)
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
        store = Store(buffer, index, self.element(eqn.operands[0], index, None))
        self.emit(ScanNest(out.type.shape, eqn.attrs["axis"], combiner, store))
        self.bindings[out] = buffer

    def _scatter(self, eqn: Eqn) -> None:
        form = eqn.op.form
        assert isinstance(form, Scatter)
        (out,) = eqn.outputs
        _, updates, *_ = operands = self._operands(eqn)
        index = space_index(updates.type.shape)
        value = updates[index]
        buffer = self.scratch(out.type)
        start = len(self.block.stages)
        self.store_value(eqn.operands[0], buffer)
        copying = self.block.stages[start:]
        copied = set().union(*map(stage_reads, copying))
        if not copied.isdisjoint(load.buffer for load in loads([value])):
            # updates made from the old array: stored first, so that it need not be kept whole
            del self.block.stages[start:]
            value = Load.make(self.materialize(updates.type, value, index), index)
            self.block.stages.extend(copying)
        target, guard = form.target(index, operands, out.type, **eqn.attrs)
        repeats = form.repeats(eqn.attrs, tuple(a.type for a in eqn.operands))
        store = Store(buffer, target, value, guard)
        self.emit(ScatterNest(updates.type.shape, repeats, form.combiner, store))
        self.bindings[out] = buffer

    # -- memory for library operands
    # --------------------------------------------------------------------

    def materialize(self, type_: ArrayType, value: Expr, index: tuple[Expr, ...]) -> Buffer:
        """A new scratch buffer that holds an expression's value at every point of a shape."""
        buffer = self.scratch(type_)
        self.emit(MapNest(type_.shape, (Store(buffer, index, value),)))
        return buffer

    def add(self, stage: Stage) -> None:
        """Append a finished stage."""
        self.block.stages.append(stage)

    def emit_reduction(
        self,
        space: tuple[int, ...],
        loop: int,
        accumulator: Accumulator,
        value: Expr,
        buffer: Buffer,
    ) -> None:
        """A nest with a single accumulator, and a value made of it that goes to a buffer."""
        store = Store(buffer, space_index(space), value)
        self.emit(ReduceNest(space, (loop,), (accumulator,), (store,)))


def build(program: Program, context: Context, donated: Sequence[int]) -> Draft:
    """The draft of a program: a block for each region, nothing scheduled or fused yet."""
    body = program.body
    if program.effects:
        body = replace(body, results=body.results[:-1])  # the token: nothing to hand out
    n_inputs = len(program.inputs)
    inputs = tuple([context.buffer("input", p.type) for p in body.params[:n_inputs]])
    constants = tuple([context.buffer("const", p.type) for p in body.params[n_inputs:]])
    outputs = tuple([context.buffer("output", atom.type) for atom in body.results])
    bind: dict[Value, Binding] = dict(zip(body.params, (*inputs, *constants), strict=True))
    block = RegionBuilder(context, body, bind, outputs).build()
    return Draft(program, context, block, inputs, constants, outputs, donated)


_IN_KERNELS = frozenset({Elementwise, Indexed, Reduction})
_form = attrgetter("op.form")


def _places(
    region: Region, sinks: Sequence[Buffer], stored: Collection[Value]
) -> dict[Value, Buffer]:
    """The stored values of a region of kernels that are made in a sink, which need no copy then.

    What library calls and bodies work on may have to stay in scratch: `drop_copies` looks into it.
    """
    if not _IN_KERNELS.issuperset(map(type, map(_form, region.eqns))):
        return {}
    places: dict[Value, Buffer] = {}
    for atom, sink in zip(region.results, sinks, strict=False):
        if isinstance(atom, Value) and atom in stored:
            places.setdefault(atom, sink)
    return places


def _aligned(shape: tuple[int, ...], index: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The index into an operand that NumPy's broadcasting aligns with a result's index."""
    if len(shape) == len(index) and 1 not in shape:
        return index
    tail = index[len(index) - len(shape) :]
    zero = scalar.const(0)
    return tuple([zero if extent == 1 else i for extent, i in zip(shape, tail, strict=True)])
