"""The cut: which values of a body its derivative keeps, and which it computes again.

Elementwise values are computed again if what they are made of takes fewer bytes, or as many and
the op is cheap: several values are often made of one. It is a greedy choice, from the last
equation back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tracegraph.ir.op import Elementwise, Indexed
from tracegraph.ir.program import Atom, Eqn, Region, Value
from tracegraph.ir.record import record
from tracegraph.tracing.trace import Trace

_CHEAP = 2
"""The cost of an op (see `Elementwise`) up to which it is repeated to keep as many bytes."""

_FEW = 8
"""How many values a chain of cheap ops may begin with."""


@record
class Cut:
    """The values to keep, and the equations that make the others of them again, in order."""

    kept: tuple[Value, ...]
    again: tuple[Eqn, ...]


def cut(eqns: Sequence[Eqn], needed: Sequence[Value], free: Collection[Value]) -> Cut:
    """What to keep of the values that equations make, so that the `needed` can be made of it.

    The `free` values are there anyway.
    """
    makers = {value: eqn for eqn in eqns for value in eqn.outputs}
    order = {eqn: number for number, eqn in enumerate(eqns)}
    sources = _sources(eqns)
    kept = dict.fromkeys(value for value in needed if value not in free)
    again: set[Eqn] = set()
    for eqn in reversed(eqns):
        if len(eqn.outputs) != 1 or eqn.outputs[0] not in kept or not _can_repeat(eqn):
            continue
        (value,) = eqn.outputs
        of = dict.fromkeys(source for a in eqn.operands for source in sources.get(a, (a,)))
        more = [a for a in of if isinstance(a, Value) and a not in free and a not in kept]
        size = sum(a.type.nbytes for a in more)
        if size < value.type.nbytes or (size == value.type.nbytes and _cost(eqn) <= _CHEAP):
            del kept[value]
            kept.update(dict.fromkeys(more))
            again.add(eqn)
            again.update(_between(eqn, makers, {*kept, *free}))
    return Cut(tuple(kept), tuple(sorted(again, key=order.__getitem__)))


def _sources(eqns: Sequence[Eqn]) -> dict[Atom, tuple[Atom, ...]]:
    """For each value that cheap ops alone make of few others, those others."""
    found: dict[Atom, tuple[Atom, ...]] = {}
    for eqn in eqns:
        if len(eqn.outputs) == 1 and _can_repeat(eqn) and _cost(eqn) <= _CHEAP:
            of = dict.fromkeys(source for a in eqn.operands for source in found.get(a, (a,)))
            if len(of) <= _FEW:
                found[eqn.outputs[0]] = tuple(of)
    return found


def _between(eqn: Eqn, makers: Mapping[Value, Eqn], there: Collection[Value]) -> set[Eqn]:
    """The equations that make the operands of an equation of values that are there."""
    found: set[Eqn] = set()
    pending = [a for a in eqn.operands if isinstance(a, Value)]
    while pending:
        value = pending.pop()
        maker = makers.get(value)
        if value not in there and maker is not None and maker not in found:
            found.add(maker)
            pending.extend(a for a in maker.operands if isinstance(a, Value))
    return found


def _can_repeat(eqn: Eqn) -> bool:
    return isinstance(eqn.op.form, (Elementwise, Indexed))


def _cost(eqn: Eqn) -> int:
    return eqn.op.form.cost if isinstance(eqn.op.form, Elementwise) else 1


def repeated(trace: Trace, eqns: Sequence[Eqn], known: Mapping[Value, Any]) -> dict[Value, Any]:
    """Record equations again in a trace, with these values; all values then known."""
    values = dict(known)
    for eqn in eqns:
        trace.source = eqn.source
        atoms = [trace.read(values[a]) if isinstance(a, Value) else a for a in eqn.operands]
        outs = trace.record(eqn.op, atoms, eqn.attrs, eqn.regions, eqn.hints)
        values.update(zip(eqn.outputs, outs, strict=True))
    return values


def used_params(region: Region) -> set[Value]:
    """The parameters that the region uses."""
    found = {a for eqn in region.eqns for a in eqn.operands if isinstance(a, Value)}
    found.update(a for a in region.results if isinstance(a, Value))
    return found.intersection(region.params)
