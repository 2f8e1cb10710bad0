"""Loop-invariant code motion: what is invariant in a loop is computed before it.

    while_loop x a { b = exp a; c = sum b; y = mul x c }   ->   b = exp a
                                                                c = sum b
                                                                while_loop x c { y = mul x c }

`invariants` says what moves. Loops inside of others go first, so that what is invariant in several
leaves them all.

A loop may have no steps, and a branch may not be taken. So what takes long is *guarded*: it moves
into a branch that is taken only if the loop has a first step. What a condition computes runs at
least once, whatever happens; and so does all in a loop whose number of steps is known. From a
branch, what is invariant moves if the choice is invariant, into a branch of the same choice; or if
there is little to do. What takes longer is computed the first time that it is needed (`once`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import partial
from math import inf

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import branch_parts, is_loop, loop_parts
from tracegraph.ir.op import Call, Control, get
from tracegraph.ir.program import Atom, Eqn, Program, Region, Value, application, has_regions
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.passes.cse import equation_key
from tracegraph.passes.invariants import (
    CERTAIN,
    Found,
    Motion,
    Search,
    are_invariant,
    is_invariant,
)
from tracegraph.passes.once import computed_once
from tracegraph.passes.rewrite import Defs, Replacement, inlined, map_atoms, rewrite, substitute


def hoist(
    program: Program, motion: Motion = CERTAIN, settled: set[Region] | None = None
) -> Program:
    """The program with what is invariant in loops computed before them.

    `settled` is as in `rewrite`.
    """
    return rewrite(program, lambda: partial(_hoist, motion), only_regions=True, settled=settled)


def _hoist(motion: Motion, eqn: Eqn, defs: Defs) -> Replacement | None:
    if isinstance(eqn.op.form, Call) or not is_loop(eqn):
        return None
    steps = eqn.attrs.get("trip_count", eqn.attrs.get("length"))
    if steps is not None and steps < 2:
        return None
    loop = loop_parts(eqn)
    at = len(eqn.operands) - len(loop.captures)
    search = Search(motion, steps)
    outside = _Outside()
    regions = eqn.regions
    captures = list(loop.captures)

    def found_in(number: int) -> Found | None:
        captured = regions[number].params[at:]
        return search.of(_with_branches_split(regions[number], captured, search), captured)

    def move(number: int, movable: Found, into: _Outside) -> list[Atom]:
        """Compute what was found; what the region captures of it."""
        nonlocal regions
        env = dict(zip(regions[number].params[at:], captures, strict=True))
        regions = _with_captures(regions, number, movable)
        return into.emit(movable.eqns, env, movable.outputs)

    if loop.condition is not None and (movable := found_in(0)) is not None:
        captures += move(0, movable, outside)
    last = len(regions) - 1
    movable = found_in(last)
    if movable is not None and (steps is not None or movable.work <= motion.in_vain):
        captures += move(last, movable, outside)
    elif movable is not None and motion.guards:
        first = inlined(regions[0], (*eqn.operands[:at], *captures))
        outside.eqns += first.eqns
        inside = _Outside()
        values = move(last, movable, inside)
        captures += outside.branch("cond", first.atoms[0], (0, 2), inside.eqns, values, eqn)
    moved = eqn
    if len(captures) > len(loop.captures):
        moved = replace(eqn, operands=(*eqn.operands[:at], *captures), regions=regions)
    keeping = computed_once(moved, search) if motion.kept < inf else None
    if keeping is not None:
        *before, moved = keeping
        outside.eqns += before
    if moved is eqn:
        return None
    outputs = loop_parts(moved)
    results = outputs.carried[: len(loop.init)], outputs.stacked
    return Replacement((*results[0], *results[1]), (*outside.eqns, moved))


def _with_captures(regions: Sequence[Region], number: int, found: Found) -> tuple[Region, ...]:
    """The regions of an equation with more captures: what was found in one of them."""
    changed = []
    for i, region in enumerate(regions):
        params = found.outputs if i == number else [Value(v.type) for v in found.outputs]
        eqns = tuple(found.rest) if i == number else region.eqns
        changed.append(Region((*region.params, *params), eqns, region.results))
    return tuple(changed)


def _with_branches_split(
    region: Region, captured: Iterable[Value], search: Search
) -> Sequence[Eqn]:
    """The equations of a region, what is invariant in its branches being outside of these."""
    if not has_regions(region):
        return region.eqns
    invariant: set[Atom] = set(captured)
    eqns: list[Eqn] = []
    for eqn in region.eqns:
        is_branch = isinstance(eqn.op.form, Control) and not is_loop(eqn)
        for each in _split(eqn, invariant, search) if is_branch else (eqn,):
            if is_invariant(each, invariant):
                invariant.update(each.outputs)
            eqns.append(each)
    return eqns if len(eqns) > len(region.eqns) else region.eqns


def _split(eqn: Eqn, invariant: set[Atom], search: Search) -> Sequence[Eqn]:
    """Equations that compute what is invariant in branches, and the branches without these."""
    if is_invariant(eqn, invariant):
        return (eqn,)
    parts = branch_parts(eqn)
    is_chosen_before = are_invariant((parts.selector,), invariant)
    most = inf if is_chosen_before else search.in_vain
    outside = _Outside()
    regions, captures = parts.branches, list(parts.captures)
    for number, branch in enumerate(parts.branches):
        env = dict(zip(branch.params, parts.captures, strict=True))
        captured = [param for param, atom in env.items() if are_invariant((atom,), invariant)]
        found = search.of(_with_branches_split(branch, captured, search), captured, most)
        if found is None:
            continue
        regions = _with_captures(regions, number, found)
        inside = _Outside() if is_chosen_before else outside
        values: Sequence[Atom] = inside.emit(found.eqns, env, found.outputs)
        if is_chosen_before:
            case = (number, len(regions))
            values = outside.branch(eqn.op.name, parts.selector, case, inside.eqns, values, eqn)
        captures += values
    if not outside.eqns:
        return (eqn,)
    rest = replace(eqn, operands=(parts.selector, *captures), regions=regions)
    return (*outside.eqns, rest)


@dataclass(slots=True)
class _Outside:
    """Equations that are computed outside of a region."""

    eqns: list[Eqn] = field(default_factory=list)

    def emit(
        self, eqns: Sequence[Eqn], env: dict[Value, Atom], outputs: Sequence[Value]
    ) -> list[Atom]:
        """Append copies of equations on other operands; what they make of the outputs."""
        known = {key: eqn for eqn in self.eqns if (key := equation_key(eqn)) is not None}
        for eqn in eqns:
            copy = _with_new_outputs(eqn, substitute(eqn, env))
            key = equation_key(copy)
            first = copy if key is None else known.setdefault(key, copy)
            if first is copy:
                self.eqns.append(copy)
            env.update(zip(eqn.outputs, first.outputs, strict=True))
        return map_atoms(outputs, env)

    def branch(
        self,
        name: str,
        selector: Atom,
        case: tuple[int, int],
        eqns: Sequence[Eqn],
        results: Sequence[Atom],
        origin: Eqn,
    ) -> Sequence[Atom]:
        """Append a cond or switch that computes equations in one of several branches; its results.

        The other branches yield what is not read.
        """
        number, count = case
        made = {value for eqn in eqns for value in eqn.outputs}
        read = dict.fromkeys(
            atom
            for atom in (*(a for eqn in eqns for a in eqn.operands), *results)
            if isinstance(atom, Value) and atom not in made
        )
        regions = []
        for i in range(count):
            params = tuple([Value(value.type) for value in read])
            inside = _Outside()
            if i == number:
                env: dict[Value, Atom] = dict(zip(read, params, strict=True))
                inside.emit(eqns, env, ())
                found = map_atoms(results, env)
            else:
                found = [inside.unread(atom.type, origin) for atom in results]
            regions.append(Region(params, tuple(inside.eqns), tuple(found)))
        outputs = tuple([Value(atom.type.strong()) for atom in results])
        operands = (selector, *read)
        self.eqns.append(
            Eqn(get(name), operands, outputs, regions=tuple(regions), source=origin.source)
        )
        return outputs

    def unread(self, type_: ArrayType, origin: Eqn) -> Atom:
        """A value that is not read."""
        attrs = {"shape": type_.shape, "dtype": type_.dtype}
        self.eqns.append(application("empty", (), attrs, origin.source))
        return self.eqns[-1].outputs[0]


def _with_new_outputs(eqn: Eqn, copy: Eqn) -> Eqn:
    """The copy with outputs of its own, whose types are weak where those of its operands are."""
    types = [value.type for value in eqn.outputs]
    operands = [atom.type for atom in copy.operands]
    if operands != [atom.type for atom in eqn.operands]:
        types = list(eqn.op.result_types(operands, eqn.attrs, eqn.regions))
    return replace(copy, outputs=tuple(map(Value, types)))
