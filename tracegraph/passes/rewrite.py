"""Rewriting by rules: equations in order, some replaced by others or by atoms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_

from tracegraph.ir.program import (
    Atom,
    Eqn,
    Literal,
    Program,
    Region,
    Value,
    application,
    has_regions,
)
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType

Defs = Mapping[Value, Eqn]


@record
class Replacement:
    """What replaces an equation: other equations, if any, and an atom for each of its outputs."""

    atoms: tuple[Atom, ...]
    eqns: tuple[Eqn, ...] = ()


Rule = Callable[[Eqn, Defs], Replacement | None]


@record
class _Walk:
    new_rule: Callable[[], Rule]
    only_regions: bool
    settled: set[Region]


def rewrite(
    program: Program,
    new_rule: Callable[[], Rule],
    *,
    only_regions: bool = False,
    settled: set[Region] | None = None,
) -> Program:
    """The program with a rule applied to each equation, including those of nested regions.

    A rule takes an equation, its operands being final, and the equations that define the values
    so far; it returns a replacement, or None to keep the equation, which is also kept if the
    replacement has other types. Each region gets its own rule from `new_rule`, so that a rule may
    remember what it has seen there. A program that no rule changes is returned as it is.

    With `only_regions`, the rule is applied to equations with regions only. Regions in `settled`
    are skipped: the rule does not change them. Regions found unchanged now are added. What a rule
    does in a region depends on nothing outside of it.
    """
    walk = _Walk(new_rule, only_regions, set() if settled is None else settled)
    body = _rewrite_region(program.body, walk)
    return program if body is program.body else replace(program, body=body)


def by_name(rules: Mapping[str, Rule]) -> Rule:
    """The rule that applies the one for the equation's op, if there is one."""

    def rule(eqn: Eqn, defs: Defs) -> Replacement | None:
        chosen = rules.get(eqn.op.name)
        return chosen(eqn, defs) if chosen is not None else None

    return rule


def in_turn(*rules: Rule) -> Rule:
    """The rule that applies several in order, each to what the one before it returned."""

    def rule(eqn: Eqn, defs: Defs) -> Replacement | None:
        replaced = None
        for each in rules:
            found = each(eqn, defs)
            if found is not None and _same_types(found.atoms, eqn.outputs):
                if len(found.eqns) != 1 or found.atoms != eqn.outputs:
                    return found
                replaced, (eqn,) = found, found.eqns
        return replaced

    return rule


def producer(eqn: Eqn, defs: Defs) -> Eqn | None:
    """The equation of the same op that makes the first operand, if one does."""
    x = eqn.operands[0]
    inner = defs.get(x) if isinstance(x, Value) else None
    return inner if inner is not None and inner.op is eqn.op else None


def substitute(eqn: Eqn, env: Mapping[Value, Atom]) -> Eqn:
    """The equation with operands replaced."""
    if env.keys().isdisjoint(eqn.operands):
        return eqn
    operands = tuple(map_atoms(eqn.operands, env))
    return Eqn(eqn.op, operands, eqn.outputs, eqn.attrs, eqn.regions, eqn.source, eqn.hints)


def map_atoms(atoms: Sequence[Atom], env: Mapping[Value, Atom]) -> list[Atom]:
    """Atoms with those values replaced that are in `env`."""
    return [env.get(a, a) if isinstance(a, Value) else a for a in atoms]


def as_typed(atom: Atom, type_: ArrayType, eqns: list[Eqn]) -> Atom:
    """An atom for one of a type that differs from its own at most in being weak or strong, as an
    operand may differ from the parameter of a region. The equation that it takes is added.

    The types of a region's equations follow from those of its parameters.
    """
    if atom.type == type_:
        return atom
    if isinstance(atom, Literal):
        return Literal(atom.value, type_)
    attrs = {"dtype": type_.dtype, "weak": type_.weak}
    eqns.append(application("cast", (atom,), attrs, None))
    return eqns[-1].outputs[0]


def inlined(
    region: Region, atoms: Sequence[Atom], outputs: Sequence[Value] | None = None
) -> Replacement:
    """A copy of the region's equations, with `atoms` for its parameters and new values; its results
    have the types of `outputs`, if these are given.
    """
    eqns: list[Eqn] = []
    env: dict[Value, Atom] = {
        param: as_typed(atom, param.type, eqns)
        for param, atom in zip(region.params, atoms, strict=True)
    }
    for eqn in region.eqns:
        new = tuple([Value(value.type) for value in eqn.outputs])
        eqns.append(replace(substitute(eqn, env), outputs=new))
        env.update(zip(eqn.outputs, new, strict=True))
    results = map_atoms(region.results, env)
    if outputs is not None:
        pairs = zip(results, outputs, strict=True)
        results = [as_typed(atom, value.type, eqns) for atom, value in pairs]
    return Replacement(tuple(results), tuple(eqns))


def _rewrite_region(region: Region, walk: _Walk) -> Region:
    if region in walk.settled or (walk.only_regions and not has_regions(region)):
        return region
    rule = walk.new_rule()
    env: dict[Value, Atom] = {}
    defs: dict[Value, Eqn] = {}
    eqns: list[Eqn] = []
    for eqn in region.eqns:
        if env:
            eqn = substitute(eqn, env)
        if eqn.regions:
            inner = tuple([_rewrite_region(r, walk) for r in eqn.regions])
            if not all(map(is_, inner, eqn.regions)):
                eqn = replace(eqn, regions=inner)
        elif walk.only_regions:
            eqns.append(eqn)
            continue
        found = rule(eqn, defs)
        if found is None or not _same_types(found.atoms, eqn.outputs):
            eqns.append(eqn)
            for value in eqn.outputs:
                defs[value] = eqn
            continue
        for old, new in zip(eqn.outputs, found.atoms, strict=True):
            if old is not new:
                env[old] = new
        for kept in found.eqns:
            eqns.append(kept)
            for value in kept.outputs:
                defs[value] = kept
    if not env and all(map(is_, eqns, region.eqns)) and len(eqns) == len(region.eqns):
        walk.settled.add(region)
        return region
    return Region(region.params, tuple(eqns), tuple(map_atoms(region.results, env)))


def _same_types(new: Sequence[Atom], old: Sequence[Atom]) -> bool:
    return all(a is b or a.type == b.type for a, b in zip(new, old, strict=True))
