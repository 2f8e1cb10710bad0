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

from tracegraph.dtypes import BOOL
from tracegraph.ir.control_forms import loop_parts
from tracegraph.ir.program import Atom, Eqn, Region, Value

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
    if eqn.op.name != "where":
        return False
    choice, _, other = eqn.operands
    return other is old and _is_mask(choice, mask, made, old.type.ndim)


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
