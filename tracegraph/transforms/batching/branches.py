"""Batching of branches.

A `cond` or `switch` whose selector is the same in all lanes stays one branch. Otherwise each branch
runs for the lanes that take it, under their mask, and its results are chosen by lane. A branch that
is costly stands in a real `cond`, so that one which no lane takes is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Call, Effect, Opaque, get
from tracegraph.ir.program import Atom, Eqn, Literal, Region, walk
from tracegraph.ops.batching import aligned
from tracegraph.transforms.batching.lanes import Batch, BatchRegion, Lanes, batches

CHEAP_BYTES = 1 << 24
"""Bytes of values in a branch above which it is skipped if no lane takes it: about as many as a GPU
writes and reads in the seven microseconds that a conditional node takes on an H200."""


def batch_branches(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]
) -> Sequence[Batch]:
    """A cond or switch for all lanes."""
    record = _each if operands[0].is_batched else _one
    flags = lanes.flags.branches(eqn, tuple([x.is_batched for x in operands]))
    return batches(record(batch, lanes, eqn, operands, flags), flags)


def batch_branch_of_lanes(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch], position: int
) -> Sequence[Batch]:
    """A branch that is taken if any lane takes it, for lanes of one more axis: if any of them does.

    It changes nothing in lanes that its mask, the capture at a position, leaves out.
    """
    flags = lanes.flags.branches(eqn, tuple([x.is_batched for x in operands]))
    captures = list(operands[1:])
    mask = lanes.spread(*captures[position])
    if lanes.mask is not None:
        mask = lanes.emit("logical_and", aligned(lanes, lanes.mask, mask.type.ndim - 1), mask)
    captures[position] = Batch(mask, True)
    given, bare = [x.is_batched for x in captures], lanes.masked(None)

    def branch(region: Region) -> Region:
        def record(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
            return inner.spread_as(batch(inner, region, batches(params, given)), flags)

        return bare.region([x.atom.type for x in captures], record)

    selector = lanes.emit("any", mask, axes=tuple(range(mask.type.ndim)))
    regions = tuple(map(branch, eqn.regions))
    atoms = [x.atom for x in captures]
    found = lanes.trace.record(eqn.op, (selector, *atoms), eqn.attrs, regions, eqn.hints)
    return batches([each.atom for each in found], flags)


def _one(
    batch: BatchRegion,
    lanes: Lanes,
    eqn: Eqn,
    operands: Sequence[Batch],
    flags: Sequence[bool],
) -> Sequence[Atom]:
    """All lanes take one branch."""
    captures = operands[1:]
    given = [x.is_batched for x in captures]

    def branch(region: Region) -> Region:
        def record(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
            return inner.spread_as(batch(inner, region, batches(params, given)), flags)

        return lanes.region([x.atom.type for x in captures], record)

    atoms = [x.atom for x in operands]
    regions = tuple(map(branch, eqn.regions))
    found = lanes.trace.record(eqn.op, (*atoms, *lanes.masks), eqn.attrs, regions, eqn.hints)
    return [each.atom for each in found]


def _each(
    batch: BatchRegion,
    lanes: Lanes,
    eqn: Eqn,
    operands: Sequence[Batch],
    flags: Sequence[bool],
) -> Sequence[Atom]:
    """Lanes take branches of their own. Effects of one branch follow those of the one before."""
    captures = list(operands[1:])
    chosen: list[Atom] | None = None
    for region, taken in zip(eqn.regions, _masks(lanes, eqn, operands[0].atom), strict=True):
        at = lanes.masked(lanes.live(taken))
        if is_costly(region, lanes.count):
            chosen = _guarded(batch, at, eqn, region, captures, flags, chosen)
        else:
            found = at.spread_as(batch(at, region, captures), flags)
            chosen = found if chosen is None else _merged(lanes, taken, found, chosen, flags)
        for result, token in zip(region.results, chosen, strict=True):
            place = _token_param(region, result)
            if place is not None:
                captures[place] = Batch(token, False)
    assert chosen is not None
    return chosen


def _masks(lanes: Lanes, eqn: Eqn, selector: Atom) -> Iterator[Atom]:
    """For each branch, the lanes that take it."""
    if eqn.op.name == "cond":
        yield selector
        yield lanes.emit("logical_not", selector)
        return
    last = len(eqn.regions) - 1
    for i in range(last + 1):
        compare = "less_equal" if i == 0 else "greater_equal" if i == last else "equal"
        yield lanes.emit(compare, selector, Literal.of(i, selector.type.strong().with_shape(())))


def _merged(
    lanes: Lanes,
    mask: Atom,
    new: Sequence[Atom],
    old: Sequence[Atom],
    flags: Sequence[bool],
) -> list[Atom]:
    """The new values in the lanes of the mask; values that are not batched have no elements."""
    return [
        lanes.select(mask, x, y) if flag else x
        for x, y, flag in zip(new, old, flags, strict=True)
    ]  # fmt: skip


def _guarded(
    batch: BatchRegion,
    lanes: Lanes,
    eqn: Eqn,
    region: Region,
    captures: Sequence[Batch],
    flags: Sequence[bool],
    old: Sequence[Atom] | None,
) -> list[Atom]:
    """A branch that runs if a live lane takes it. The results of the others are the old ones, or
    zeros if there are none: each lane could as well decide for itself.
    """
    assert lanes.mask is not None
    batched = [x.is_batched for x in captures]
    atoms = [*[x.atom for x in captures], *(old or ())]
    types = [atom.type for atom in atoms]

    def taken(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        before, (mask,) = params[len(batched) :], inner.masks
        results_of_lanes = inner.spread_as(
            batch(inner, region, batches(params[: len(batched)], batched)), flags
        )
        kept = before if old is not None else [inner.zeros(x.type) for x in results_of_lanes]
        return _merged(inner, mask, results_of_lanes, kept, flags)

    def skipped(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
        old_results = []
        for i, (type_, result) in enumerate(zip(types_found, region.results, strict=True)):
            place = _token_param(region, result)
            if place is not None:
                old_results.append(params[place])
            elif old is None:
                old_results.append(inner.zeros(type_))
            else:
                old_results.append(params[len(batched) + i])
        return old_results

    first = lanes.region(types, taken)
    types_found = first.result_types
    regions = (first, lanes.region(types, skipped))
    operands = (lanes.any(lanes.mask), *atoms, lanes.mask)
    results = lanes.trace.record(get("cond"), operands, {}, regions, eqn.hints)
    return [result_tracer.atom for result_tracer in results]


def is_costly(region: Region, count: int) -> bool:
    """Whether it is worth a branch of the graph to skip a region that no lane needs.

    Loops and products are. A loop that all lanes share may not even end for inputs of others.
    """
    size = 0
    for eqn in walk(region):
        if isinstance(eqn.op.form, (Effect, Opaque)) or (eqn.regions and is_loop(eqn)):
            return True
        size += sum(value.type.nbytes for value in eqn.outputs)
    return size * count > CHEAP_BYTES


def _token_param(region: Region, result: Atom) -> int | None:
    """The place of the parameter that is the token before the effects of a region.

    None for a result that is not a token.
    """
    if result.type != TOKEN:
        return None
    made = {value: eqn for eqn in region.eqns for value in eqn.outputs}
    while result in made:
        eqn = made[result]
        if isinstance(eqn.op.form, Effect):
            result = eqn.operands[0]
        elif not eqn.regions:
            return None
        elif is_loop(eqn):
            result = eqn.operands[eqn.outputs.index(result)]
        else:
            branch = eqn.regions[0]
            place = _token_param(branch, branch.results[eqn.outputs.index(result)])
            if place is None:
                return None
            captures = eqn.operands if isinstance(eqn.op.form, Call) else eqn.operands[1:]
            result = captures[place]
    return region.params.index(result) if result in region.params else None
