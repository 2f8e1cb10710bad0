"""Batching of loops.

A `while_loop` whose condition is the same in all lanes stays one loop. Otherwise it runs while a
lane goes on, and carries which of them do:

    live = mask & cond(s)
    while any(live):
        s = where(live, body(s), s)          the body is recorded under the mask `live`
        live = live & cond(s)

So every lane takes the steps that it would take by itself. Where the body only writes elements of a
carried array, those of lanes that have ended are dropped: `where` would rewrite all of the array.

A loop that `vmap` has recorded in this way gets more lanes by another `vmap`: its mask gets an
axis, and it runs while any lane goes on. It needs no second mask, because a step changes nothing in
lanes that have ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.control_forms import LoopParts, loop_counts, loop_parts, split
from tracegraph.ir.lane_loops import mask_of_lanes
from tracegraph.ir.op import Scatter
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ops.batching import aligned
from tracegraph.transforms.batching.flags import has_elements
from tracegraph.transforms.batching.lanes import Batch, BatchRegion, Lanes, batches


def batch_while(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]
) -> Sequence[Batch]:
    """A while_loop for all lanes."""
    flags, ends_apart = lanes.flags.loop(eqn, tuple([x.is_batched for x in operands]))
    atoms = lanes.spread_as(operands, flags)
    mask = mask_of_lanes(eqn) if ends_apart else None
    if mask is not None:
        found = _with_more_lanes(batch, lanes, eqn, atoms, flags, mask)
    else:
        record = _ending_apart if ends_apart else _ending_together
        found = record(batch, lanes, eqn, atoms, flags)
    return batches(found[: eqn.attrs["carry"]], flags[: eqn.attrs["carry"]])


def _ending_together(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, atoms: Sequence[Atom], flags: Sequence[bool]
) -> Sequence[Atom]:
    condition, body = eqn.regions
    wanted = flags[: eqn.attrs["carry"]]

    def test(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        return inner.spread_as(batch(inner, condition, batches(params, flags)), (False,))

    def step(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        return inner.spread_as(batch(inner, body, batches(params, flags)), wanted)

    types = [atom.type for atom in atoms]
    regions = (lanes.region(types, test), lanes.region(types, step))
    found = lanes.trace.record(eqn.op, (*atoms, *lanes.masks), eqn.attrs, regions, eqn.hints)
    return [each.atom for each in found]


def _ending_apart(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, atoms: Sequence[Atom], flags: Sequence[bool]
) -> Sequence[Atom]:
    carry, loop = eqn.attrs["carry"], loop_parts(eqn)
    condition, body = eqn.regions
    written, writes = _written_carries(loop)

    def goes_on(at: Lanes, values: Sequence[Atom]) -> Atom:
        """The live lanes whose condition holds."""
        (again,) = at.spread_as(batch(at, condition, batches(values, flags)), (True,))
        return at.live(again)

    def test(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        return [inner.any(params[carry])]

    def step(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        state, (live,), captures = split(params, carry, 1)
        inner = inner.masked(live)
        stepped = batch(inner, body, batches((*state, *captures), flags), writes)
        after = [
            new if i in written or not flags[i] else inner.select(live, new, old)
            for i, (new, old) in enumerate(
                zip(inner.spread_as(stepped, flags[:carry]), state, strict=True)
            )
        ]
        return [*after, goes_on(inner, (*after, *captures))]

    live = goes_on(lanes, atoms)
    operands = (*atoms[:carry], live, *atoms[carry:])
    types = [atom.type for atom in operands]
    bare = lanes.masked(None)  # `live` has the mask in it
    regions = (bare.region(types, test), bare.region(types, step))
    attrs = {k: v for k, v in loop_counts(eqn, carry + 1).items() if k != "trip_count"}
    found = lanes.trace.record(eqn.op, operands, attrs, regions, eqn.hints)
    return [each.atom for each in found]


def _with_more_lanes(
    batch: BatchRegion,
    lanes: Lanes,
    eqn: Eqn,
    atoms: Sequence[Atom],
    flags: Sequence[bool],
    mask: int,
) -> Sequence[Atom]:
    """A loop of lanes, for lanes of one more axis: what comes in is live in live lanes only."""
    carry, body = eqn.attrs["carry"], eqn.regions[-1]
    live = atoms[mask]
    if lanes.mask is not None:
        around = aligned(lanes, lanes.mask, live.type.ndim - 1)
        live = lanes.emit("logical_and", around, live)
    operands = (*atoms[:mask], live, *atoms[mask + 1 :])
    axes = tuple(range(live.type.ndim))

    def test(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        return [inner.emit("any", params[mask], axes=axes)]

    def step(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        return inner.spread_as(batch(inner, body, batches(params, flags)), flags[:carry])

    bare = lanes.masked(None)  # `live` has the mask in it
    types = [atom.type for atom in operands]
    regions = (bare.region(types, test), bare.region(types, step))
    found = lanes.trace.record(eqn.op, operands, eqn.attrs, regions, eqn.hints)
    return [each.atom for each in found]


def _written_carries(loop: LoopParts) -> tuple[set[int], set[Eqn]]:
    """The carries that the body changes by scatters alone, and these scatters."""
    scatters = {e.outputs[0]: e for e in loop.body.eqns if isinstance(e.op.form, Scatter)}
    written, writes = set(), set()
    for i, atom in enumerate(loop.body.results):
        chain = []
        while atom in scatters:
            chain.append(scatters[atom])
            atom = chain[-1].operands[0]
        if chain and atom is loop.body.params[i] and has_elements(atom.type):
            written.add(i)
            writes.update(chain)
    return written, writes


def batch_scan(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]
) -> Sequence[Batch]:
    """A scan for all lanes: they are axis 1 of what is sliced and stacked."""
    carry, (body,) = eqn.attrs["carry"], eqn.regions
    flags, _ = lanes.flags.loop(eqn, tuple([x.is_batched for x in operands]))
    wanted = flags[:carry] + lanes.flags.results(body, flags)[carry:]
    init, xs, captures = split(lanes.spread_as(operands, flags), carry, eqn.attrs["xs"])
    sliced = flags[carry : carry + len(xs)]
    xs = tuple([_swapped(lanes, x) if b else x for x, b in zip(xs, sliced, strict=True)])

    def step(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        return inner.spread_as(batch(inner, body, batches(params, flags)), wanted)

    slices = [x.type.with_shape(x.type.shape[1:]) for x in xs]
    types = [*[x.type for x in init], *slices, *[x.type for x in captures]]
    found = lanes.trace.record(
        eqn.op,
        (*init, *xs, *captures, *lanes.masks),
        eqn.attrs,
        (lanes.region(types, step),),
        eqn.hints,
    )
    outputs = [each.atom for each in found]
    stacks = [
        _swapped(lanes, y) if b else y for y, b in zip(outputs[carry:], wanted[carry:], strict=True)
    ]
    return batches([*outputs[:carry], *stacks], wanted)


def _swapped(lanes: Lanes, x: Atom) -> Atom:
    """The lanes and the steps in the other order."""
    return lanes.emit("transpose", x, axes=(1, 0, *range(2, x.type.ndim)))
