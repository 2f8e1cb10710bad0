"""Dead code elimination: equations, captures, carries, stacked results and constants.

What no result of the program depends on is removed, loops included. The token of the last effect is
a result, and depends on all effects before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, TypeVar

from tracegraph.ir.control_forms import branch_parts, is_loop, loop_counts, loop_parts
from tracegraph.ir.op import Call
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.record import replace

_T = TypeVar("_T")


def dce(program: Program) -> Program:
    """The program with only what its results depend on. Its inputs stay as they are."""
    body, live = _prune(program.body, program.body.results)
    if body is program.body and live.issuperset(body.params[len(program.inputs) :]):
        return program
    count = len(program.inputs)
    constants = body.params[count:]
    kept = [i for i, value in enumerate(constants) if value in live]
    body = replace(body, params=(*body.params[:count], *_pick(constants, kept)))
    return replace(program, body=body, constants=_pick(program.constants, kept))


def _prune(region: Region, results: Sequence[Atom]) -> tuple[Region, set[Atom]]:
    """The region with only these results and what they need, and the atoms that it uses."""
    live: set[Atom] = set(results)
    kept = []
    for eqn in reversed(region.eqns):
        if live.isdisjoint(eqn.outputs):
            continue
        if eqn.regions and not isinstance(eqn.op.form, Call):
            used = [i for i, value in enumerate(eqn.outputs) if value in live]
            eqn = _prune_loop(eqn, used) if is_loop(eqn) else _prune_branches(eqn, used)
        kept.append(eqn)
        live.update(eqn.operands)
    kept.reverse()
    if _are_same(kept, region.eqns) and _are_same(results, region.results):
        return region, live
    return Region(region.params, tuple(kept), tuple(results)), live


def _are_same(new: Sequence[object], old: Sequence[object]) -> bool:
    return len(new) == len(old) and all(map(is_, new, old))


def _prune_branches(eqn: Eqn, used: list[int]) -> Eqn:
    """A cond or switch without results that are not used, and captures that no branch uses."""
    parts = branch_parts(eqn)
    pruned = [_prune(region, _pick(region.results, used)) for region in parts.branches]
    kept = _used_params(pruned, range(len(parts.captures)))
    return _updated(
        eqn,
        operands=(parts.selector, *_pick(parts.captures, kept)),
        outputs=_pick(eqn.outputs, used),
        regions=tuple(_with_params(region, kept) for region, _ in pruned),
    )


def _prune_loop(eqn: Eqn, used: list[int]) -> Eqn:
    """A loop without carries that serve only themselves, and unused xs, captures and results."""
    loop = loop_parts(eqn)
    condition, body, carry = loop.condition, loop.body, len(loop.init)
    needed = {i for i in used if i < carry}
    stacked = [i for i in used if i >= carry]
    pruned = []
    if condition is not None:
        tested = _prune(condition, condition.results)
        pruned.append(tested)
        needed.update(i for i, p in enumerate(condition.params[:carry]) if p in tested[1])
    carries = _live_carries(body, carry, needed, _pick(body.results, stacked))
    pruned.append(_prune(body, _pick(body.results, [*carries, *stacked])))
    slices = carry + len(loop.xs)
    xs = _used_params(pruned, range(carry, slices))
    kept = [*carries, *xs, *_used_params(pruned, range(slices, len(eqn.operands)))]
    return _updated(
        eqn,
        operands=_pick(eqn.operands, kept),
        outputs=_pick(eqn.outputs, [*carries, *stacked]),
        attrs=loop_counts(eqn, len(carries), len(xs)),
        regions=tuple(_with_params(region, kept) for region, _ in pruned),
    )


def _live_carries(body: Region, carry: int, needed: set[int], others: Iterable[Atom]) -> list[int]:
    """The carries that are needed, or that a needed one, or one of `others`, depends on."""
    if len(needed) == carry:
        return list(range(carry))
    index = {param: i for i, param in enumerate(body.params[:carry])}
    defs = {value: eqn for eqn in body.eqns for value in eqn.outputs}
    live = set(needed)
    seen: set[Value] = set()
    pending = [*others, *(body.results[i] for i in needed)]
    while pending:
        atom = pending.pop()
        if isinstance(atom, Literal) or atom in seen:
            continue
        seen.add(atom)
        if atom in index:
            live.add(index[atom])
            pending.append(body.results[index[atom]])
        elif atom in defs:
            pending.extend(defs[atom].operands)
    return sorted(live)


def _updated(
    eqn: Eqn,
    operands: tuple[Atom, ...],
    outputs: tuple[Value, ...],
    regions: tuple[Region, ...],
    attrs: Mapping[str, Any] | None = None,
) -> Eqn:
    """The equation with other parts, or itself if they are the same."""
    parts = (*operands, *outputs, *regions)
    if _are_same(parts, (*eqn.operands, *eqn.outputs, *eqn.regions)):
        return eqn
    attrs = eqn.attrs if attrs is None else attrs
    return replace(eqn, operands=operands, outputs=outputs, regions=regions, attrs=attrs)


def _pick(items: Sequence[_T], kept: Collection[int]) -> tuple[_T, ...]:
    return tuple([items[i] for i in kept])


def _with_params(region: Region, kept: Collection[int]) -> Region:
    if len(kept) == len(region.params):
        return region
    return replace(region, params=_pick(region.params, kept))


def _used_params(pruned: Sequence[tuple[Region, set[Atom]]], positions: range) -> list[int]:
    """The positions at which some region uses its parameter."""
    used: set[int] = set()
    for region, live in pruned:
        used.update([i for i in positions if region.params[i] in live])
    return sorted(used)
