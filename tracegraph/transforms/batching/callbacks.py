"""Batching of `pure_callback`: how a function of the host is called for many lanes."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph import errors
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.op import get
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ir.record import replace
from tracegraph.transforms.batching.lanes import Batch, BatchRegion, Lanes


def batch_callback(
    batch_region: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]
) -> Sequence[Batch]:
    """Record a callback for all lanes, by the method that the user chose.

    Raises:
        CallbackBatchError: none was chosen.
    """
    callback: HostFunction = eqn.attrs["callback"]
    if not any(x.is_batched for x in operands):
        found = _record(lanes, eqn, [x.atom for x in operands], callback)
        return [Batch(atom, False) for atom in found]
    match callback.vmap_method:
        case "sequential":
            found = _sequential(lanes, eqn, operands)
        case "expand_dims":
            found = _at_once(lanes, eqn, [_expanded(lanes, x) for x in operands])
        case "broadcast_all":
            found = _at_once(lanes, eqn, [lanes.spread(*x) for x in operands])
        case _:
            raise errors.CallbackBatchError(callback.name, eqn.source)
    return [Batch(atom, True) for atom in found]


def _expanded(lanes: Lanes, x: Batch) -> Atom:
    """The operand with an axis for the lanes, of one element if they share the value."""
    if x.is_batched:
        return x.atom
    return lanes.emit("broadcast_to", x.atom, shape=(1, *x.atom.type.shape))


def _at_once(lanes: Lanes, eqn: Eqn, operands: Sequence[Atom]) -> list[Atom]:
    """One call for all lanes, whether they are live or not."""
    callback: HostFunction = eqn.attrs["callback"]
    results = tuple([lanes.type_of(type_, True) for type_ in callback.results])
    return _record(lanes, eqn, operands, replace(callback, results=results))


def _sequential(lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]) -> list[Atom]:
    """A call for each live lane: a scan over the lanes. Others have zeros."""
    callback: HostFunction = eqn.attrs["callback"]
    sliced = [x.atom for x in operands if x.is_batched]
    shared = [x.atom for x in operands if not x.is_batched]
    xs = [*sliced, *lanes.masks]

    def step(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        own, common = iter(params[: len(sliced)]), iter(params[len(xs) :])
        operands_of_lane = [next(own if x.is_batched else common) for x in operands]
        if lanes.mask is None:
            return _record(inner, eqn, operands_of_lane, callback)
        types = [atom.type for atom in operands_of_lane]
        branches = (
            inner.region(types, lambda at, atoms: _record(at, eqn, atoms, callback)),
            inner.region(types, lambda at, atoms: [at.zeros(t) for t in callback.results]),
        )
        results = inner.trace.record(
            get("cond"), (params[len(sliced)], *operands_of_lane), {}, branches
        )
        return [result.atom for result in results]

    slices = [x.type.with_shape(x.type.shape[1:]) for x in xs]
    types = [*slices, *[x.type for x in shared]]
    attrs = {"carry": 0, "xs": len(xs), "length": lanes.count, "reverse": False}
    region = lanes.masked(None).region(types, step)
    stacked = lanes.trace.record(get("scan"), (*xs, *shared), attrs, (region,))
    return [out.atom for out in stacked]


def _record(lanes: Lanes, eqn: Eqn, operands: Sequence[Atom], callback: HostFunction) -> list[Atom]:
    found = lanes.trace.record(eqn.op, operands, {**eqn.attrs, "callback": callback})
    return [each.atom for each in found]
