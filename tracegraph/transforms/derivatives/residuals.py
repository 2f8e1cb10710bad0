"""The cut: which values of a body its derivative keeps, and which it computes again.

An elementwise value is computed again if its operands are kept anyway, or take fewer bytes, or take
as many bytes and the op is cheap, because several values are often made of one operand. The choice
is greedy, from the last equation back.
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

_FAR = 64
"""How many values are searched for its beginning."""


@record
class Cut:
    """The values to keep, and the equations that make the others of them again, in order."""

    kept: tuple[Value, ...]
    again: tuple[Eqn, ...]


def cut(eqns: Sequence[Eqn], needed: Sequence[Value], free: Collection[Value]) -> Cut:
    """Which values of the equations to keep, so that the `needed` ones can be computed from them.

    The `free` values are kept anyway.
    """
    makers = {value: eqn for eqn in eqns for value in eqn.outputs}
    order = {eqn: number for number, eqn in enumerate(eqns)}
    kept = dict.fromkeys(value for value in needed if value not in free)
    again: set[Eqn] = set()
    for eqn in reversed(eqns):
        if len(eqn.outputs) != 1 or eqn.outputs[0] not in kept or not _can_repeat(eqn):
            continue
        (value,) = eqn.outputs
        more, size = _made_of(eqn, makers, kept, free)
        if size < value.type.nbytes or (size == value.type.nbytes and _cost(eqn) <= _CHEAP):
            del kept[value]
            kept.update(dict.fromkeys(more))
            again.add(eqn)
            again.update(_between(eqn, makers, kept, free))
    return Cut(tuple(kept), tuple(sorted(again, key=order.__getitem__)))


def _made_of(
    eqn: Eqn, makers: Mapping[Value, Eqn], kept: Collection[Value], free: Collection[Value]
) -> tuple[list[Value], int]:
    """What else must be kept to make the result of an equation again, and its bytes.

    These are operands, or the values of which cheap ops alone make the operands, whichever take
    fewer bytes. Values that are there end the search.
    """

    def missing(atoms: Sequence[Atom]) -> list[Value]:
        return [a for a in atoms if isinstance(a, Value) and a not in kept and a not in free]

    operands = list(dict.fromkeys(missing(eqn.operands)))
    direct = sum(a.type.nbytes for a in operands)
    found: dict[Value, None] = {}
    seen, pending = set(operands), list(operands)
    while pending:
        value = pending.pop()
        maker = makers.get(value)
        if maker is None or not _can_repeat(maker) or _cost(maker) > _CHEAP:
            found[value] = None
            continue
        further = [a for a in missing(maker.operands) if a not in seen]
        seen.update(further)
        pending += further
        if len(found) > _FEW or len(seen) > _FAR:
            return operands, direct
    size = sum(a.type.nbytes for a in found)
    return (list(found), size) if size <= direct else (operands, direct)


def _between(
    eqn: Eqn, makers: Mapping[Value, Eqn], kept: Collection[Value], free: Collection[Value]
) -> set[Eqn]:
    """The equations that make the operands of an equation of values that are there."""
    found: set[Eqn] = set()
    pending = [a for a in eqn.operands if isinstance(a, Value)]
    while pending:
        value = pending.pop()
        maker = makers.get(value)
        if maker is not None and maker not in found and value not in kept and value not in free:
            found.add(maker)
            pending.extend(a for a in maker.operands if isinstance(a, Value))
    return found


def _can_repeat(eqn: Eqn) -> bool:
    return isinstance(eqn.op.form, (Elementwise, Indexed))


def _cost(eqn: Eqn) -> int:
    form = eqn.op.form
    if isinstance(form, Elementwise):
        return form.cost
    moves = isinstance(form, Indexed) and not form.view and len(eqn.operands) > 1
    return _CHEAP + 1 if moves else 1  # a concatenation is seldom fused with what uses it


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
