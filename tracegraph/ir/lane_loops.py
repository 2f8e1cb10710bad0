"""Loops of lanes: a `while_loop` that runs while any lane goes on, and changes those lanes alone.

    while any(live):                                 live: bool[lanes…], a carry
        s = where(live, new(s), s)                   for each other carry s[lanes…, …]
        live = live & goes_on(s)

A lane that has ended keeps its values, however many steps the others make. So the lanes may run one
after the other, each to its own end. `vmap` records such loops, and other transforms may record
others from them: whether a loop is one is read off its regions, not remembered.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracegraph.dtypes import BOOL
from tracegraph.ir.control_forms import loop_parts
from tracegraph.ir.op import Scatter
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value

_Producers = Mapping[Value, Eqn]

_CONJUNCTIONS = ("logical_and", "bitwise_and")


def mask_of_lanes(eqn: Eqn) -> int | None:
    """The position, among the carries of a while_loop, of the mask of lanes that go on.

    None if the loop is no loop of lanes: its condition is another one, a carry may change where the
    mask is false, or it has no elements, as a token has none.
    """
    loop = loop_parts(eqn)
    if loop.condition is None:
        return None
    tested = _tested(loop.condition)
    carries = loop.body.params[: len(loop.init)]
    if tested is None or tested >= len(carries):
        return None
    mask, made = carries[tested], _producers(loop.body)
    if mask.type.dtype != BOOL or not mask.type.shape:
        return None
    for old, new in zip(carries, loop.body.results, strict=True):
        if not _is_kept(old, new, mask, made):
            return None
    return tested


def _tested(condition: Region) -> int | None:
    """The parameter whose elements a condition tests: whether any is true."""
    made, atom = _producers(condition), condition.results[0]
    if atom not in made:
        return None
    while isinstance(atom, Value) and atom in made:
        eqn = made[atom]
        if eqn.op.name not in ("any", "reshape"):
            return None
        (atom,) = eqn.operands
    return condition.params.index(atom) if atom in condition.params else None


def _is_kept(old: Value, new: Atom, mask: Value, made: _Producers) -> bool:
    """Whether a carry keeps its elements where the mask is false."""
    if new is old:
        return True
    lanes = mask.type.shape
    if not isinstance(new, Value) or old.type.shape[: len(lanes)] != lanes or not old.type.size:
        return False
    eqn = made.get(new)
    if eqn is None:
        return False
    if old is mask:
        return eqn.op.name in _CONJUNCTIONS and mask in eqn.operands
    if isinstance(eqn.op.form, Scatter):
        base = eqn.operands[0]
        return _is_of_live_lanes(eqn, mask, made) and _is_kept(old, base, mask, made)
    if eqn.op.name != "where":
        return False
    choice, _, other = eqn.operands
    return other is old and _is_mask(choice, mask, made, old.type.ndim)


def _is_of_live_lanes(scatter: Eqn, mask: Value, made: _Producers) -> bool:
    """Whether a scatter writes to each lane what is at its number, and drops it where the mask is
    false: there, the index of the lane is out of range.
    """
    _, updates, *places = scatter.operands
    if mask.type.ndim != 1 or scatter.attrs.get("dims", ())[:1] != (0,) or not places:
        return False
    number = made.get(places[0]) if isinstance(places[0], Value) else None
    if number is None or number.op.name != "where" or number.operands[0] is not mask:
        return False
    if updates.type.shape[:1] != mask.type.shape or places[0].type.shape != mask.type.shape:
        return False
    _, lane, beyond = number.operands
    own = made.get(lane) if isinstance(lane, Value) else None
    (count,) = mask.type.shape
    is_own = own is not None and own.op.name == "iota" and own.attrs["size"] == count
    return is_own and isinstance(beyond, Literal) and bool(np.all(beyond.value >= count))


def _is_mask(choice: Atom, mask: Value, made: _Producers, rank: int) -> bool:
    """Whether a choice by elements of an array of `rank` axes is the mask, by lanes."""
    lanes = mask.type.shape
    if choice.type.ndim != rank:
        return False
    while choice is not mask:
        eqn = made.get(choice) if isinstance(choice, Value) else None
        if eqn is None or eqn.op.name not in ("reshape", "broadcast_to"):
            return False
        source = eqn.operands[0]
        spread = eqn.op.name == "broadcast_to"
        if spread and source.type.ndim != choice.type.ndim:
            return False
        if not _has_lanes(source, lanes) or not (spread or _has_lanes(choice, lanes)):
            return False
        choice = source
    return True


def _has_lanes(atom: Atom, lanes: tuple[int, ...]) -> bool:
    """Whether the extents are those of lanes, and others of 1 behind them."""
    return atom.type.shape == (*lanes, *(1,) * (atom.type.ndim - len(lanes)))


def _producers(region: Region) -> _Producers:
    return {value: eqn for eqn in region.eqns for value in eqn.outputs}
