"""Loop-invariant carries become captures; captures are distinct values; and what all branches
return as it came in is not a result of the branch.

    while_loop[carry=2] x table 2.0 x x   ->   while_loop[carry=1] x x table

if the body returns the second carry unchanged. A capture is not copied by each iteration. A literal
moves into the region, where other passes can use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracegraph.ir.control_forms import BranchParts, branch_parts, is_loop, loop_counts, loop_parts
from tracegraph.ir.op import Call
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value
from tracegraph.ir.record import replace
from tracegraph.passes.rewrite import Defs, Replacement, as_typed, map_atoms, rewrite, substitute


def tidy_captures(program: Program, settled: set[Region] | None = None) -> Program:
    """The program without loop-invariant carries, and with each value captured once.

    `settled` is as in `rewrite`.
    """
    return rewrite(program, lambda: _tidy, only_regions=True, settled=settled)


def _tidy(eqn: Eqn, defs: Defs) -> Replacement | None:
    if isinstance(eqn.op.form, Call):
        return None
    return _tidy_loop(eqn) if is_loop(eqn) else _tidy_branches(eqn)


def _tidy_branches(eqn: Eqn) -> Replacement | None:
    parts = branch_parts(eqn)
    same = {
        i: atom
        for i, value in enumerate(eqn.outputs)
        if (atom := _unchanged(parts, i)) is not None and atom.type == value.type
    }
    distinct = _are_distinct_values(parts.captures)
    if distinct and not same:
        return None
    kept = [i for i in range(len(eqn.outputs)) if i not in same]
    regions: Sequence[Region] = parts.branches
    if same:
        regions = [replace(r, results=tuple([r.results[i] for i in kept])) for r in regions]
    operands, merged = _merged(parts.captures, regions, 0)
    outputs = tuple([eqn.outputs[i] for i in kept])
    tidied = replace(eqn, operands=(parts.selector, *operands), outputs=outputs, regions=merged)
    atoms = [same.get(i, value) for i, value in enumerate(eqn.outputs)]
    return Replacement(tuple(atoms), (tidied,) if kept else ())


def _unchanged(parts: BranchParts, i: int) -> Atom | None:
    """The capture, or literal, that all branches return as result `i`."""
    found = []
    for region in parts.branches:
        atom = region.results[i]
        if isinstance(atom, Value):
            if atom not in region.params:
                return None
            atom = parts.captures[region.params.index(atom)]
        found.append(atom)
    first = found[0]
    if isinstance(first, Literal):
        key = first.type, first.value.tobytes()
        alike = (isinstance(a, Literal) and (a.type, a.value.tobytes()) == key for a in found)
        return first if all(alike) else None
    return first if all(atom is first for atom in found) else None


def _tidy_loop(eqn: Eqn) -> Replacement | None:
    loop = loop_parts(eqn)
    body, carry = loop.body, len(loop.init)
    constant = [
        i
        for i, atom in enumerate(loop.init)
        if body.results[i] is body.params[i] and atom.type == body.params[i].type
    ]
    if not constant and _are_distinct_values(loop.captures):
        return None
    first = carry + len(loop.xs)
    varying = [i for i in range(len(eqn.operands)) if i not in constant]
    order = [*varying, *constant]
    kept = [i for i in range(len(body.results)) if i not in constant]
    regions = [_reordered(region, order) for region in eqn.regions]
    regions[-1] = replace(regions[-1], results=tuple(body.results[i] for i in kept))
    operands, merged = _merged(
        [eqn.operands[i] for i in order],
        regions,
        first - len(constant),
    )
    tidied = replace(
        eqn,
        operands=operands,
        outputs=tuple(eqn.outputs[i] for i in kept),
        attrs=loop_counts(eqn, carry - len(constant), len(loop.xs)),
        regions=merged,
    )
    atoms = (eqn.operands[i] if i in constant else v for i, v in enumerate(eqn.outputs))
    return Replacement(tuple(atoms), (tidied,))


def _are_distinct_values(captures: Sequence[Atom]) -> bool:
    distinct = {atom for atom in captures if isinstance(atom, Value)}
    return len(distinct) == len(captures)


def _reordered(region: Region, order: Sequence[int]) -> Region:
    return replace(region, params=tuple(region.params[i] for i in order))


def _merged(
    operands: Sequence[Atom], regions: Sequence[Region], first: int
) -> tuple[tuple[Atom, ...], tuple[Region, ...]]:
    """Without captures (operands from `first` on) that repeat or are literals."""
    kept = list(range(first))
    stand_ins: dict[int, Literal | int] = {}
    seen: dict[Atom, int] = {}
    for i, atom in enumerate(operands[first:], first):
        if isinstance(atom, Literal):
            stand_ins[i] = atom
        elif atom in seen:
            stand_ins[i] = seen[atom]
        else:
            seen[atom] = i
            kept.append(i)

    def narrowed(region: Region) -> Region:
        made: list[Eqn] = []
        env = {
            region.params[i]: as_typed(
                region.params[new] if isinstance(new, int) else new, region.params[i].type, made
            )
            for i, new in stand_ins.items()
        }
        return _substituted(_reordered(region, kept), env, made)

    return tuple(operands[i] for i in kept), tuple(narrowed(region) for region in regions)


def _substituted(region: Region, env: Mapping[Value, Atom], first: Sequence[Eqn]) -> Region:
    """The region with parameters replaced, and with these equations first."""
    eqns = [substitute(eqn, env) for eqn in region.eqns]
    return replace(region, eqns=(*first, *eqns), results=tuple(map_atoms(region.results, env)))
