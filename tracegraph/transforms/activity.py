"""Activity: which values have a tangent, by a walk over the equations that records nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.ir.control_forms import branch_parts, is_loop, loop_parts
from tracegraph.ir.derivative import Constant, Linear
from tracegraph.ir.program import Atom, Eqn, Region, Value
from tracegraph.ir.types import ArrayType

Flags = tuple[bool, ...]
Known = dict[tuple[Region, Flags], Flags]
"""Results of regions by the flags of their parameters."""


def is_inexact(type_: ArrayType) -> bool:
    """Whether values of a type have tangents: floats and complex numbers do."""
    return type_.dtype.kind in "fcV"


def active_results(region: Region, active: Sequence[bool], known: Known | None = None) -> Flags:
    """Which results depend smoothly on an active parameter."""
    known = {} if known is None else known
    flags = tuple(active)
    found = known.get((region, flags))
    if found is None:
        found = known[region, flags] = _walk(region, flags, known)
    return found


def active_carry(eqn: Eqn, active: Sequence[bool], known: Known | None = None) -> list[bool]:
    """The flags of a loop's operands at the fixed point: a carry stays active once it is."""
    known = {} if known is None else known
    count = len(loop_parts(eqn).init)
    flags = list(active)
    while True:
        results = active_results(eqn.regions[-1], flags, known)[:count]
        grown = [a or b for a, b in zip(flags, results, strict=False)] + flags[count:]
        if grown == flags:
            return flags
        flags = grown


def active_outputs(eqn: Eqn, active: Sequence[bool], known: Known | None = None) -> Flags:
    """Which outputs of an equation depend smoothly on its active operands."""
    known = {} if known is None else known
    if not any(active):
        return (False,) * len(eqn.outputs)
    if eqn.regions:
        return _of_structural(eqn, active, known)
    record = eqn.op.derivative
    if isinstance(record, Constant):
        return (False,) * len(eqn.outputs)
    linear = record.of if isinstance(record, Linear) else None
    if linear is not None and not any(active[i] for i in linear):
        return (False,) * len(eqn.outputs)
    return tuple(is_inexact(value.type) for value in eqn.outputs)


def _walk(region: Region, active: Flags, known: Known) -> Flags:
    live: set[Atom] = {
        p for p, flag in zip(region.params, active, strict=True) if flag and is_inexact(p.type)
    }
    for eqn in region.eqns:
        flags = [isinstance(a, Value) and a in live for a in eqn.operands]
        found = active_outputs(eqn, flags, known)
        live.update(v for v, flag in zip(eqn.outputs, found, strict=True) if flag)
    return tuple(isinstance(a, Value) and a in live for a in region.results)


def _of_structural(eqn: Eqn, active: Sequence[bool], known: Known) -> Flags:
    if is_loop(eqn):
        flags = active_carry(eqn, active, known)
        count = len(loop_parts(eqn).init)
        return (*flags[:count], *active_results(eqn.regions[-1], flags, known)[count:])
    columns = [active_results(r, active[1:], known) for r in branch_parts(eqn).branches]
    return tuple(map(any, zip(*columns, strict=True)))
