"""Batching of calls: functions that bring rules for their derivatives (`ops/calls.py`).

A checkpoint is its function, for all lanes. Of the others, function and rules have to fit each
other:

    results                        are batched, and so are the tangents and residuals of them
    arguments, captures            stay shared by all lanes if they are; so do tangents of arguments
    cotangents of shared arguments are sums over the lanes
    unknowns of linear systems     are batched, and so are their right sides and first guesses
"""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.effects import TOKEN
from tracegraph.ir.program import Atom, Eqn, Region
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.transforms.batching.flags import Flags, has_rules
from tracegraph.transforms.batching.lanes import INEXACT, Batch, BatchRegion, Lanes, batches


@record
class _Signature:
    """Which parameters and results of a region are batched. Results that are not are the same in
    all lanes, or `summed` over them.
    """

    params: Flags
    results: Flags
    summed: bool = False


def batch_call(
    batch: BatchRegion, lanes: Lanes, eqn: Eqn, operands: Sequence[Batch]
) -> Sequence[Batch]:
    """A call for all lanes."""
    batched_operands = tuple([x.is_batched for x in operands])
    wanted = lanes.flags.call(eqn, batched_operands)
    flags, signatures = (
        batched_operands,
        [_Signature(batched_operands, wanted), *map(_shared, eqn.regions[1:])],
    )
    if any(batched_operands) and has_rules(eqn):
        flags, signatures = _signatures(eqn, batched_operands)
    atoms = lanes.spread_as(operands, flags)

    def batched(region: Region, signature: _Signature) -> Region:
        def record(inner: Lanes, params: Sequence[Atom]) -> Sequence[Atom]:
            results = batch(inner, region, batches(params, signature.params))
            if not signature.summed:
                return inner.spread_as(results, signature.results)
            whole = inner.spread_as(results, (True,) * len(results))
            pairs = zip(whole, signature.results, strict=True)
            return [x if is_batched else _sum(inner, x) for x, is_batched in pairs]

        pairs = zip(region.params, signature.params, strict=True)
        return lanes.region([lanes.type_of(p.type, flag) for p, flag in pairs], record)

    attrs = dict(eqn.attrs)
    if "types" in attrs:
        attrs["types"] = tuple([lanes.type_of(t, any(batched_operands)) for t in attrs["types"]])
    regions = tuple(map(batched, eqn.regions, signatures))
    outputs = lanes.trace.record(eqn.op, (*atoms, *lanes.masks), attrs, regions, eqn.hints)
    return batches([result.atom for result in outputs], wanted)


def _sum(lanes: Lanes, x: Atom) -> Atom:
    """The sum over the live lanes."""
    if lanes.mask is not None:
        x = lanes.select(lanes.mask, x, lanes.zeros(x.type))
    return lanes.emit("sum", x, axes=(0,))


def _shared(region: Region) -> _Signature:
    return _Signature((False,) * len(region.params), (False,) * len(region.results))


def _signatures(eqn: Eqn, batched: Flags) -> tuple[Flags, list[_Signature]]:
    """Which operands are batched, and the signatures of the regions."""
    name, types = eqn.op.name, [a.type for a in eqn.operands]
    if name == "custom_linear":
        return _linear_signatures(eqn, batched)
    args = eqn.attrs["args"]
    own, captures = batched[:args], batched[args:]
    tangents = [f for f, t in zip(own, types, strict=False) if t.dtype.kind in INEXACT]
    if name == "custom_jvp":
        function, rule = eqn.regions
        return batched, [
            _Signature(batched, _batched(function.result_types)),
            _Signature((*own, *tangents, *captures), _batched(rule.result_types)),
        ]
    if name == "custom_vjp":
        *forwards, backward = eqn.regions
        both = [_Signature(batched, _batched(region.result_types)) for region in forwards]
        return batched, [*both, _Signature(_led(backward, captures), tuple(tangents), summed=True)]
    signatures = [_Signature(_led(r, captures), _batched(r.result_types)) for r in eqn.regions]
    return signatures[0].params, signatures


def _linear_signatures(eqn: Eqn, given: Flags) -> tuple[Flags, list[_Signature]]:
    """The derivative of a custom_vjp: the first region may be missing, the last one is backward."""
    count, kept = eqn.attrs["tangents"], eqn.attrs["residuals"]
    tangents, residuals, captures = given[:count], given[count:][:kept], given[count + kept :]
    *forwards, _ = eqn.regions
    cotangents = _batched(eqn.attrs["types"])
    backward = _Signature((*residuals, *cotangents, *captures), tangents, summed=True)
    return given, [*[_Signature(given, _batched(r.result_types)) for r in forwards], backward]


def _batched(types: Sequence[ArrayType]) -> Flags:
    """All of these types but tokens."""
    return tuple([type_ != TOKEN for type_ in types])


def _led(region: Region, captures: Flags) -> Flags:
    """The flags of the parameters of a region: captures, and before these whatever is batched."""
    leading = region.params[: len(region.params) - len(captures)]
    return (*_batched([p.type for p in leading]), *captures)
