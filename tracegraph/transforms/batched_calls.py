"""Batching of calls: functions that bring rules for their derivatives (`ops/calls.py`).

A checkpoint is its function, for all lanes. Of the others, function and rules have to fit each
other: all that they take and return is batched, also what lanes share.
"""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.program import Atom, Eqn, Region
from tracegraph.transforms.batched_flags import has_elements
from tracegraph.transforms.lanes import Batch, BatchRegion, Lanes, batches


def batch_call(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]
) -> Sequence[Batch]:
    """A call for all lanes."""
    given = [x.is_batched for x in operands]
    wanted = lanes.flags.call(eqn, tuple(given))
    one_region = len(eqn.regions) == 1
    whole = any(given) and not one_region
    if whole:
        given = [has_elements(x.atom.type) or x.is_batched for x in operands]
    atoms = lanes.spread_as(operands, given)

    def batched(region: Region) -> Region:
        first = region is eqn.regions[0]
        flags = given if first else [whole and has_elements(p.type) for p in region.params]
        results = wanted if first else [whole and has_elements(a.type) for a in region.results]

        def record(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
            return inner.spread_as(batch(inner, region, batches(params, flags)), results)

        types = [lanes.type_of(p.type, f) for p, f in zip(region.params, flags, strict=True)]
        return lanes.region(types, record)

    attrs = dict(eqn.attrs)
    if "types" in attrs:
        attrs["types"] = tuple([lanes.type_of(t, whole) for t in attrs["types"]])
    regions = tuple(map(batched, eqn.regions))
    found = lanes.trace.record(eqn.op, (*atoms, *lanes.masks), attrs, regions, eqn.hints)
    return batches([each.atom for each in found], wanted)
