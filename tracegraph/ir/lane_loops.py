"""Loops of lanes: a `while_loop` that runs while any lane goes on, and changes those lanes alone.

    while any(live):                                 live: bool[lanes…], a carry
        s = where(live, new(s), s)                   for each other carry s[lanes…, …]
        live = live & goes_on(s)

A lane that has ended keeps its values, however many steps the others make. So the lanes may run one
after the other, each to its own end. `vmap` records such loops, and other transforms may record
others from them: whether a loop is one is read off its regions, not remembered.

Likewise a branch of lanes: a `cond` that is taken if any lane takes it, and changes those alone.
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


def mask_of_branch(eqn: Eqn, made: Mapping[Value, Eqn]) -> int | None:
    """The position, among the captures of a cond, of the mask of lanes that take it.

    The cond is taken if any lane takes it, and changes no others: its results are what they would
    be if each lane decided for itself. None if it is another cond. `made` are the equations around
    it, by what they compute.
    """
    selector, *captures = eqn.operands
    mask = _folded(selector, made)
    if mask is None or mask.type.dtype != BOOL or mask not in captures:
        return None
    position = captures.index(mask)
    taken, skipped = eqn.regions
    for new, old in zip(taken.results, skipped.results, strict=True):
        if not _is_chosen(new, taken, old, skipped, taken.params[position]):
            return None
    return position


def _is_chosen(new: Atom, taken: Region, old: Atom, skipped: Region, mask: Value) -> bool:
    """Whether results of two branches are the same where the mask is false."""
    inside, outside = _producers(taken), _producers(skipped)
    if new in taken.params:
        return _are_equal(new, taken, inside, old, skipped, outside)
    chosen = inside.get(new) if isinstance(new, Value) else None
    if chosen is None or chosen.op.name != "where" or not new.type.size:
        return False
    choice, _, other = chosen.operands
    lanes, shape = mask.type.shape, new.type.shape
    if shape[: len(lanes)] != lanes or not _is_mask(choice, mask, inside, len(shape)):
        return False
    return _are_equal(other, taken, inside, old, skipped, outside)


def _folded(atom: Atom, made: _Producers) -> Atom | None:
    """The array of which an atom says whether any element is true; None if it is no such atom."""
    while isinstance(atom, Value) and atom in made and made[atom].op.name in ("any", "reshape"):
        (atom,) = made[atom].operands
    return atom if atom.type.shape else None


def _are_equal(
    one: Atom,
    first: Region,
    made: _Producers,
    other: Atom,
    second: Region,
    made_second: _Producers,
) -> bool:
    """Whether values of two regions are the same parameter, or the same number everywhere."""
    if one in first.params and other in second.params:
        return first.params.index(one) == second.params.index(other)
    numbers = _number(one, made), _number(other, made_second)
    return numbers[0] is not None and numbers[0] == numbers[1]


def _number(atom: Atom, made: _Producers) -> bytes | None:
    """The bytes of the number that an array has everywhere, if that is known."""
    while isinstance(atom, Value):
        eqn = made.get(atom)
        if eqn is None or eqn.op.name not in ("broadcast_to", "reshape"):
            return None
        (atom,) = eqn.operands
    return np.asarray(atom.value, atom.type.dtype).tobytes() if atom.type.size == 1 else None


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
