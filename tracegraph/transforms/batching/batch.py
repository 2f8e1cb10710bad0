"""Batching: the equations of a region for many lanes at once.

Batched values have the lanes along axis 0. An equation without batched operands is recorded as it
is, once for all lanes. For others, the form of the op implies the rule, or its record has one;
loops, branches and effects have theirs here. Each lane computes what it would by itself, bit for
bit, but for the order in which sums and products are rounded.

Under a mask of live lanes, batched floats are marked (`ops/live_lanes.py`): those that come in, and
those that meet floats that lanes share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tracegraph import errors
from tracegraph.ir.lane_loops import mask_of_branch
from tracegraph.ir.op import Call, Collective, Elementwise, Reduction, Scan
from tracegraph.ir.program import NO_HINTS, Atom, Eqn, Literal, Region, Value
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import aligned
from tracegraph.transforms.batching.branches import batch_branch_of_lanes, batch_branches
from tracegraph.transforms.batching.callbacks import batch_callback
from tracegraph.transforms.batching.calls import batch_call
from tracegraph.transforms.batching.custom_kernels import batch_custom_kernel
from tracegraph.transforms.batching.effects import batch_effect, is_effect
from tracegraph.transforms.batching.lanes import INEXACT, Batch, ControlRule, Lanes
from tracegraph.transforms.batching.loops import batch_scan, batch_while

_CONTROL: Mapping[str, ControlRule] = {
    "cond": batch_branches,
    "switch": batch_branches,
    "while_loop": batch_while,
    "scan": batch_scan,
    "custom_kernel": batch_custom_kernel,
    "pure_callback": batch_callback,
}


def batch_region(
    lanes: Lanes, region: Region, operands: Sequence[Batch], guarded: Collection[Eqn] = ()
) -> list[Batch]:
    """Record a region for all lanes; its results.

    Scatters among `guarded` leave the arrays of lanes that are not live as they are.
    """
    trace, around = lanes.trace, lanes.trace.source
    env: dict[Value, Batch] = dict(zip(region.params, operands, strict=True))
    marks, branches = _Marks(lanes), _Branches(region)
    if any(is_inexact(atom.type) for atom in region.results):
        marks.values.update(region.params)

    def read(atom: Atom) -> Batch:
        return Batch(atom, False) if isinstance(atom, Literal) else env[atom]

    def read_marked(atom: Atom) -> Batch:
        return marks.of(read(atom)) if atom in marks.values else read(atom)

    try:
        for eqn in region.eqns:
            trace.source = eqn.source
            inputs = [read_marked(atom) for atom in eqn.operands]
            meets_shared = not eqn.regions and _meets_shared(inputs)
            if meets_shared:
                inputs = [marks.of(x) for x in inputs]
            if eqn in guarded:  # it keeps lanes that are not live as they are: those are used
                inputs[0] = read(eqn.operands[0])
                marks.values.update(eqn.outputs)
                outputs = _batch_eqn(replace(lanes, writing=lanes.mask), eqn, inputs)
            elif eqn.op.name == "cond" and (mask := branches.mask(eqn, inputs)) is not None:
                outputs = batch_branch_of_lanes(batch_region, lanes, eqn, inputs, mask)
            else:
                outputs = _batch_eqn(lanes, eqn, inputs)
                if meets_shared:
                    outputs = [marks.of(x) for x in outputs]
            env.update(zip(eqn.outputs, outputs, strict=True))
    finally:
        trace.source = around
    return [read(atom) for atom in region.results]


class _Branches:
    """The branches of a region that lanes may take apart."""

    def __init__(self, region: Region) -> None:
        self._region = region
        self._made: dict[Value, Eqn] | None = None

    def mask(self, eqn: Eqn, operands: Sequence[Batch]) -> int | None:
        """The position of the mask of such a branch, if lanes of one more axis differ in it."""
        if not operands[0].is_batched:
            return None
        if self._made is None:
            self._made = {value: each for each in self._region.eqns for value in each.outputs}
        return mask_of_branch(eqn, self._made)


class _Marks:
    """Marks of live lanes. Where one of `values` is used, it is marked."""

    def __init__(self, lanes: Lanes) -> None:
        self.values: set[Atom] = set()
        self._lanes = lanes
        self._known: dict[Atom, Batch] = {}

    def of(self, x: Batch) -> Batch:
        """The value, marked if it is batched."""
        if not x.is_batched:
            return x
        if x.atom not in self._known:
            marked = Batch(self._lanes.marked(x.atom), True)
            self._known[x.atom] = self._known[marked.atom] = marked
        return self._known[x.atom]


def _batch_eqn(lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]) -> Sequence[Batch]:
    op, attrs = eqn.op, eqn.attrs
    if is_effect(eqn):
        return [Batch(batch_effect(lanes, eqn, operands), False)]
    if op.name in _CONTROL:
        return _CONTROL[op.name](batch_region, lanes, eqn, operands)
    if isinstance(op.form, Call):
        return batch_call(batch_region, lanes, eqn, operands)
    if lanes.flags.over_lanes(eqn):
        return [_over_lanes(lanes, eqn, operands)]
    atoms, batched = [x.atom for x in operands], [x.is_batched for x in operands]
    if not any(batched) and lanes.writing is None:
        results = lanes.trace.record(op, atoms, attrs, eqn.regions, eqn.hints)
        return [Batch(result_tracer.atom, False) for result_tracer in results]
    match op.form:
        case Elementwise():
            rank = eqn.outputs[0].type.ndim
            pairs = zip(atoms, batched, strict=True)
            atoms = [aligned(lanes, x, rank) if flag else x for x, flag in pairs]
        case Reduction():
            attrs = {**attrs, "axes": tuple([axis + 1 for axis in attrs["axes"]])}
        case Scan():
            attrs = {**attrs, "axis": attrs["axis"] + 1}
        case _:
            if op.batch is None:
                raise errors.BatchRuleError(op.name, eqn.source)
            lanes = replace(lanes, hints=eqn.hints)
            made = op.batch(lanes, atoms, batched, **attrs)
            return [Batch(x, True) for x in (made if isinstance(made, tuple) else (made,))]
    (result,) = lanes.trace.record(op, atoms, attrs, (), NO_HINTS)
    return [Batch(result.atom, True)]


def _over_lanes(lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]) -> Batch:
    """A collective of the lanes themselves, whether or not its operand differs between them.

    They are all live: the check for uniform conditions has seen to that.
    """
    form = eqn.op.form
    assert isinstance(form, Collective)
    assert form.over_lanes is not None
    assert lanes.flags.axis is not None
    atoms = [lanes.spread(*x) for x in operands]
    return Batch(form.over_lanes(lanes, lanes.flags.axis, *atoms, **eqn.attrs), form.varies)


def _meets_shared(operands: Sequence[Batch]) -> bool:
    """Whether lanes meet floats that they share, whose derivative is a sum over lanes."""
    return any(x.is_batched for x in operands) and any(
        not x.is_batched and isinstance(x.atom, Value) and is_inexact(x.atom.type) for x in operands
    )


def is_inexact(type_: ArrayType) -> bool:
    """Whether values of the type have derivatives."""
    return type_.dtype.kind in INEXACT
