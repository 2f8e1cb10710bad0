"""What branches in a loop compute alike each time is computed once: the first time, and then kept.

    while_loop x a {                       while_loop x known c a {
      cond p x a {                           cond p x known c a {
        c = cholesky a              ->         c = cond known c a { c } { cholesky a }
        y = solve c x                          y = solve c x
        yield y                                yield y True c
      } { yield x }                          } { yield x known c }
    }                                      }

`hoist` moves what is computed in any case, and what takes so little that it may be in vain. A
branch that is taken in some steps only may hold more: what takes longer than another branch is kept
by the loop, with a flag that says whether it is known. No step computes what it does not need, and
none computes it a second time. A branch that is not taken hands both on as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import branch_parts, is_loop, loop_counts, loop_parts
from tracegraph.ir.op import Control, get
from tracegraph.ir.program import Atom, Eqn, Literal, Region, Value, application
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.passes.invariants import Found, Search, are_invariant, is_invariant, work_of
from tracegraph.passes.rewrite import inlined

_FLAG = ArrayType(np.dtype(np.bool_))
_UNKNOWN, _KNOWN = (Literal(np.bool_(flag), _FLAG) for flag in (False, True))

_ROWS = frozenset({"fft", "rfft", "irfft", "sort", "argsort", "largest"})
"""Ops of rows, which may be short. Others that have no estimate take long."""

_ROW_COST = 32
"""The cost of an element of a row, in units of `Elementwise.cost`."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Values that a region takes and hands on: flags, and what is known if they are set."""

    params: tuple[Value, ...]
    results: tuple[Atom, ...]


_Region = tuple[Sequence[Eqn], _Kept]
"""Equations of a region, and what they keep."""


def computed_once(eqn: Eqn, search: Search) -> tuple[Eqn, ...] | None:
    """A loop that keeps what its branches compute alike, after the equations of its first carry;
    None if there is nothing to keep.
    """
    loop = loop_parts(eqn)
    found = _keeping(loop.body, loop.body.eqns, loop.captured_params, search)
    if found is None or loop.entry is not None:
        return None
    eqns, kept = found
    before: list[Eqn] = []
    start: list[Atom] = []
    for value in kept.params:
        if value.type == _FLAG:
            start.append(_UNKNOWN)
        else:
            attrs = {"shape": value.type.shape, "dtype": value.type.dtype}
            before.append(application("empty", (), attrs, eqn.source))
            start += before[-1].outputs
    carry = len(loop.init)

    def extended(items: Sequence[Atom], more: Sequence[Atom]) -> tuple[Atom, ...]:
        return *items[:carry], *more, *items[carry:]

    params, results = extended(loop.body.params, kept.params), loop.body.results
    body = replace(
        loop.body, params=params, eqns=tuple(eqns), results=extended(results, kept.results)
    )
    regions: tuple[Region, ...] = (body,)
    if loop.condition is not None:
        unread = _like(kept.params)
        condition = replace(loop.condition, params=extended(loop.condition.params, unread))
        regions = condition, body
    keeping = replace(
        eqn,
        operands=extended(eqn.operands, start),
        outputs=extended(eqn.outputs, _like(kept.params)),
        attrs=loop_counts(eqn, carry + len(start), len(loop.xs)),
        regions=regions,
    )
    return *before, keeping


def _keeping(
    region: Region, eqns: Sequence[Eqn], captured: Iterable[Value], search: Search
) -> _Region | None:
    """Equations of a region with what its branches keep; None if that is nothing.

    `captured` are the parameters that are invariant.
    """
    if not any(eqn.regions for eqn in eqns):
        return None
    invariant: set[Atom] = set(captured)
    found: list[Eqn] = []
    kept = _Kept((), ())
    for eqn in eqns:
        if is_invariant(eqn, invariant):
            invariant.update(eqn.outputs)
        elif isinstance(eqn.op.form, Control) and not is_loop(eqn) and not _looks_up(eqn, region):
            branches = _keeping_branches(eqn, invariant, search)
            if branches is not None:
                eqn, more = branches
                kept = _Kept((*kept.params, *more.params), (*kept.results, *more.results))
        found.append(eqn)
    return (found, kept) if kept.params else None


def _keeping_branches(eqn: Eqn, invariant: set[Atom], search: Search) -> tuple[Eqn, _Kept] | None:
    """Branches that take what each of them keeps, and hand it on."""
    parts = branch_parts(eqn)
    inside = [
        _keeping_branch(
            branch,
            [
                param
                for param, atom in zip(branch.params, parts.captures, strict=True)
                if are_invariant((atom,), invariant)
            ],
            search,
        )
        for branch in parts.branches
    ]
    if not any(inside):
        return None
    regions = []
    for number, branch in enumerate(parts.branches):
        params: list[Value] = []
        results: list[Atom] = []
        for other, region in enumerate(inside):
            if region is None:
                continue
            own = region[1].params if other == number else _like(region[1].params)
            params += own
            results += region[1].results if other == number else own
        here = inside[number]
        eqns = branch.eqns if here is None else tuple(here[0])
        regions.append(Region((*branch.params, *params), eqns, (*branch.results, *results)))
    taken = _like([param for region in inside if region for param in region[1].params])
    handed_on = _like(taken)
    keeping = replace(
        eqn,
        operands=(*eqn.operands, *taken),
        outputs=(*eqn.outputs, *handed_on),
        regions=tuple(regions),
    )
    return keeping, _Kept(taken, handed_on)


def _keeping_branch(branch: Region, captured: Sequence[Value], search: Search) -> _Region | None:
    """A branch that looks up what is invariant in it, if that takes long."""
    found = search.of(branch.eqns, captured)
    first: list[Eqn] = []
    kept = _Kept((), ())
    eqns: Sequence[Eqn] = branch.eqns
    if found is not None and _takes_long(found, search.motion.kept):
        flag, values = Value(_FLAG), _like(found.outputs)
        first = [_look_up(flag, values, found)]
        kept = _Kept((flag, *values), (_KNOWN, *found.outputs))
        eqns = found.rest
    inner = _keeping(branch, eqns, captured, search)
    if inner is not None:
        eqns, more = inner
        kept = _Kept((*kept.params, *more.params), (*kept.results, *more.results))
    return ([*first, *eqns], kept) if kept.params else None


def _look_up(flag: Value, values: Sequence[Value], found: Found) -> Eqn:
    """The cond that takes what is known, or computes it."""
    made = {value for eqn in found.eqns for value in eqn.outputs}
    read = tuple(
        dict.fromkeys(
            atom
            for eqn in found.eqns
            for atom in eqn.operands
            if isinstance(atom, Value) and atom not in made
        )
    )
    known, unknown = _like((*values, *read)), _like((*values, *read))
    copy = inlined(Region(read, tuple(found.eqns), tuple(found.outputs)), unknown[len(values) :])
    regions = (
        Region(known, (), known[: len(values)]),
        Region(unknown, copy.eqns, copy.atoms),
    )
    source = found.eqns[-1].source
    outputs = tuple(found.outputs)
    return Eqn(get("cond"), (flag, *values, *read), outputs, regions=regions, source=source)


def _looks_up(eqn: Eqn, region: Region) -> bool:
    """Whether an equation of a region is such a cond: what it computes is kept already."""
    count = len(eqn.outputs)
    flag, *values = eqn.operands[: count + 1]
    if eqn.op.name != "cond" or flag not in region.params:
        return False
    first, at = eqn.regions[0], region.params.index(flag)
    is_kept = not first.eqns and first.results == first.params[:count]
    return is_kept and [*region.params[at + 1 : at + 1 + count]] == values


def _takes_long(found: Found, least: float) -> bool:
    """Whether it is worth a branch. Values of weak types are none of a loop's carry."""
    if any(value.type.weak for value in found.outputs):
        return False
    return sum(map(_estimate, found.eqns)) >= least


def _estimate(eqn: Eqn) -> float:
    work = work_of(eqn)
    if work == inf and eqn.op.name in _ROWS:
        return eqn.operands[0].type.size * _ROW_COST
    return work


def _like(values: Sequence[Value]) -> tuple[Value, ...]:
    """New values of the same types."""
    return tuple([Value(value.type) for value in values])
