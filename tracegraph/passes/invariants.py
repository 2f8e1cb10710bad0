"""Loop-invariant code motion: what each step of a loop would compute again is computed before it.

    while_loop x a { b = exp a; c = sum b; y = mul x c }   ->   b = exp a
                                                                c = sum b
                                                                while_loop x c { y = mul x c }

An equation is *invariant* if all its operands are: captures of the loop, literals, and results of
invariant equations. Effects are not, nor callbacks. Loops inside of others go first, so that what
is invariant in several leaves them all.

Not all that is invariant is worth a place in memory: kernels compute views, broadcasts and cheap
arithmetic where they are used, without any. What moves are the *roots*, with what they are made of:

- factorizations, products, transforms, sorts, running folds, scatters, kernels of users;
- folds, loops and branches;
- elementwise values and gathers that take no more memory than what they are read from, if they are
  expensive (a transcendental function), or stored in every step anyway, because a library or an
  inner loop reads them. `Motion.cheap` says that all others move as well, as on a host, where each
  op is a call. It is the sum along a chain of ops that counts.

What is no root stays in the loop, and is computed outside, too, where a root needs it.

A loop may have no steps, and a branch may not be taken. So what takes long is *guarded*: it moves
into a branch that is taken only if the loop has a first step. What a condition computes runs at
least once, whatever happens; and so does all in a loop whose number of steps is known. From a
branch, what is invariant moves if the choice is invariant, into a branch of the same choice; or if
there is little to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from tracegraph.ir.control_forms import branch_parts, is_loop, loop_parts
from tracegraph.ir.op import (
    Call,
    Control,
    Effect,
    Elementwise,
    Indexed,
    Opaque,
    Reduction,
    Scan,
    get,
)
from tracegraph.ir.program import Atom, Eqn, Literal, Program, Region, Value, application
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import ArrayType
from tracegraph.passes.cse import equation_key
from tracegraph.passes.rewrite import Defs, Replacement, inlined, map_atoms, rewrite, substitute

_EXPENSIVE = 8
"""The work of an element, in units of `Elementwise.cost`, that is worth a load: a transcendental
function. A gather counts as much: it loads an index first."""

_MANY_STEPS = 32
"""Steps from which an expensive element is worth a kernel of its own before the loop: that takes
some 0.9 µs, and 30 ns less a step (H100)."""

_SMALL_BYTES = 1 << 15
"""Where ops are calls, what takes no more than that moves, however little it is made of."""

_STAYS = frozenset({"pure_callback"})
"""Ops that users see when they run."""


@record
class Motion:
    """What moves out of loops.

    `cheap`: elementwise values move however little there is to compute. `in_vain` is the work, in
    elements times `Elementwise.cost`, that may be done for a loop without steps or a branch that is
    not taken; what takes longer is guarded by a branch, or else stays: without `guards`, loops that
    may have no steps keep all but what their conditions compute.
    """

    cheap: bool = False
    in_vain: float = 0
    guards: bool = False


CERTAIN = Motion()
"""What is computed in any case moves, if it is expensive."""


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
    search = _Search(motion, steps)
    outside = _Outside()
    regions = list(eqn.regions)
    captures: list[Atom] = []

    def move(number: int, region: Region, found: _Found, into: _Outside) -> None:
        """Compute the roots outside; the region has them as captures."""
        env = dict(zip(region.params[at:], (*loop.captures, *captures), strict=True))
        values = into.emit(found.eqns, env, found.outputs)
        captures.extend(values)
        for i, each in enumerate(regions):
            params = found.outputs if i == number else [Value(v.type) for v in found.outputs]
            eqns = found.rest if i == number else each.eqns
            regions[i] = Region((*each.params, *params), tuple(eqns), each.results)

    if loop.condition is not None:
        found = search.of(loop.condition, loop.condition.params[at:])
        if found is not None:
            move(0, loop.condition, found, outside)
    body = regions[-1]
    found = search.of(body, body.params[at:])
    if found is not None and (steps is not None or found.work <= motion.in_vain):
        move(len(regions) - 1, body, found, outside)
    elif found is not None and motion.guards:
        entry = inlined(regions[0], (*eqn.operands, *captures))
        (has_steps,) = entry.atoms
        inside = _Outside()
        move(1, body, found, inside)
        outside.eqns += entry.eqns
        guarded = captures[-len(found.outputs) :]
        captures[-len(found.outputs) :] = outside.guard(has_steps, inside.eqns, guarded, eqn)
    if not captures:
        return None
    moved = replace(eqn, operands=(*eqn.operands, *captures), regions=tuple(regions))
    return Replacement(eqn.outputs, (*outside.eqns, moved))


@dataclass(slots=True)
class _Found:
    """What moves out of a region: equations in order, the outputs of the roots among them, the work
    of all; and the equations that stay.
    """

    eqns: list[Eqn]
    outputs: list[Value]
    work: float
    rest: list[Eqn]


@dataclass(slots=True)
class _Chain:
    """Elementwise values and views that end in one: the work of an element, and the bytes that the
    chain is read from.
    """

    cost: int
    nbytes: int


@record
class _Search:
    """Finds what moves out of regions of a loop of that many steps, None if that is unknown."""

    motion: Motion
    steps: int | None

    def of(self, region: Region, captured: Iterable[Value]) -> _Found | None:
        """What moves, given the invariant parameters; None if nothing does."""
        eqns = self._with_branches_split(region, set(captured))
        invariant: set[Atom] = set(captured)
        makers: dict[Atom, Eqn] = {}
        for eqn in eqns:
            if _is_invariant(eqn, invariant):
                invariant.update(eqn.outputs)
                makers.update(dict.fromkeys(eqn.outputs, eqn))
        if not makers:
            return None
        roots = self._roots(eqns, makers)
        if not roots:
            return None
        needed = _needed(roots, makers)
        return _Found(
            [eqn for eqn in eqns if eqn in needed],
            [value for eqn in eqns if eqn in roots for value in eqn.outputs],
            sum(map(_work, needed)),
            [eqn for eqn in eqns if eqn not in roots],
        )

    def _roots(self, eqns: Sequence[Eqn], makers: Mapping[Atom, Eqn]) -> set[Eqn]:
        stored = _stored(eqns, makers)
        chains: dict[Atom, _Chain] = {}
        roots: set[Eqn] = set()
        for eqn in dict.fromkeys(makers.values()):
            if isinstance(eqn.op.form, (Elementwise, Indexed)):
                (out,) = eqn.outputs
                chain = _chain(eqn, chains)
                if not self._is_worth_memory(out.type, chain, out in stored):
                    chains[out] = chain
                    continue
            elif isinstance(eqn.op.form, Reduction | Call) and not _shrinks(eqn):
                continue
            if any(value.type.size for value in eqn.outputs):
                roots.add(eqn)
        return roots

    def _is_worth_memory(self, out: ArrayType, chain: _Chain, is_stored: bool) -> bool:
        """Whether an elementwise value is loaded faster than it is computed."""
        if not chain.cost:
            return False
        fits = out.nbytes <= chain.nbytes
        if self.motion.cheap:
            return fits or out.nbytes <= _SMALL_BYTES
        if is_stored and fits:
            return True
        expensive = chain.cost >= _EXPENSIVE and out.nbytes <= 2 * chain.nbytes
        return expensive and (self.steps is None or self.steps >= _MANY_STEPS)

    def _with_branches_split(self, region: Region, captured: set[Value]) -> Sequence[Eqn]:
        """The equations of a region, what is invariant in branches being outside of these."""
        eqns: list[Eqn] = []
        invariant: set[Atom] = set(captured)
        for eqn in region.eqns:
            if isinstance(eqn.op.form, Control) and not is_loop(eqn):
                before, eqn = self._split(eqn, invariant)
                for each in before:
                    if _is_invariant(each, invariant):
                        invariant.update(each.outputs)
                eqns += before
            if _is_invariant(eqn, invariant):
                invariant.update(eqn.outputs)
            eqns.append(eqn)
        return eqns if len(eqns) > len(region.eqns) else region.eqns

    def _split(self, eqn: Eqn, invariant: set[Atom]) -> tuple[list[Eqn], Eqn]:
        """Equations that compute what is invariant in the branches, and the rest of the branch."""
        parts = branch_parts(eqn)
        is_chosen_before = _are_invariant((parts.selector,), invariant)
        if _is_invariant(eqn, invariant):
            return [], eqn
        founds = []
        for branch in parts.branches:
            params = [
                param
                for param, atom in zip(branch.params, parts.captures, strict=True)
                if _are_invariant((atom,), invariant)
            ]
            found = self.of(branch, params)
            if found and not is_chosen_before and found.work > self.motion.in_vain:
                found = None
            founds.append(found)
        if not any(founds):
            return [], eqn
        outside = _Outside()
        values: list[Atom] = []
        regions = list(parts.branches)
        for number, found in enumerate(founds):
            if found is None:
                continue
            branch = parts.branches[number]
            env = dict(zip(branch.params, parts.captures, strict=True))
            inside = outside if not is_chosen_before else _Outside()
            made = inside.emit(found.eqns, env, found.outputs)
            if is_chosen_before:
                made = outside.choose(eqn, number, inside.eqns, made)
            values += made
            for i, each in enumerate(regions):
                params = found.outputs if i == number else [Value(v.type) for v in found.outputs]
                kept = found.rest if i == number else each.eqns
                regions[i] = Region((*each.params, *params), tuple(kept), each.results)
        rest = replace(eqn, operands=(*eqn.operands, *values), regions=tuple(regions))
        return outside.eqns, rest


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

    def guard(
        self, is_taken: Atom, eqns: Sequence[Eqn], results: Sequence[Atom], origin: Eqn
    ) -> Sequence[Atom]:
        """Append a branch that computes equations if it is taken; its results."""
        return self._branch("cond", is_taken, 2, 0, eqns, results, origin)

    def choose(
        self, eqn: Eqn, number: int, eqns: Sequence[Eqn], results: Sequence[Atom]
    ) -> Sequence[Atom]:
        """Append a branch of the same choice that computes equations in this one of the cases."""
        count = len(eqn.regions)
        return self._branch(eqn.op.name, eqn.operands[0], count, number, eqns, results, eqn)

    def _branch(
        self,
        name: str,
        selector: Atom,
        count: int,
        number: int,
        eqns: Sequence[Eqn],
        results: Sequence[Atom],
        origin: Eqn,
    ) -> Sequence[Atom]:
        made = {value for eqn in eqns for value in eqn.outputs}
        read = dict.fromkeys(
            atom
            for atom in (*(a for eqn in eqns for a in eqn.operands), *results)
            if isinstance(atom, Value) and atom not in made
        )
        regions = []
        for i in range(count):
            params = tuple([Value(value.type) for value in read])
            env: dict[Value, Atom] = dict(zip(read, params, strict=True))
            if i == number:
                inside = _Outside()
                found: Sequence[Atom] = inside.emit(eqns, env, ())
                found = map_atoms(results, env)
                regions.append(Region(params, tuple(inside.eqns), tuple(found)))
            else:
                nothing = [_unset(atom.type, origin) for atom in results]
                made_of = tuple([eqn for eqn, _ in nothing if eqn is not None])
                regions.append(Region(params, made_of, tuple([atom for _, atom in nothing])))
        outputs = tuple([Value(atom.type.strong()) for atom in results])
        self.eqns.append(
            Eqn(get(name), (selector, *read), outputs, regions=tuple(regions), source=origin.source)
        )
        return outputs


def _with_new_outputs(eqn: Eqn, copy: Eqn) -> Eqn:
    """The copy with outputs of its own, whose types are weak where those of its operands are."""
    types = [value.type for value in eqn.outputs]
    operands = [atom.type for atom in copy.operands]
    if operands != [atom.type for atom in eqn.operands]:
        types = list(eqn.op.result_types(operands, eqn.attrs, eqn.regions))
    return replace(copy, outputs=tuple(map(Value, types)))


def _unset(type_: ArrayType, origin: Eqn) -> tuple[Eqn | None, Atom]:
    """A value that is not read."""
    if not type_.shape:
        return None, Literal.of(0, ArrayType(type_.dtype))
    eqn = application("empty", (), {"shape": type_.shape, "dtype": type_.dtype}, origin.source)
    return eqn, eqn.outputs[0]


def _are_invariant(atoms: Iterable[Atom], invariant: set[Atom]) -> bool:
    return all(isinstance(atom, Literal) or atom in invariant for atom in atoms)


def _is_invariant(eqn: Eqn, invariant: set[Atom]) -> bool:
    return _are_invariant(eqn.operands, invariant) and _is_pure(eqn)


def _is_pure(eqn: Eqn) -> bool:
    if isinstance(eqn.op.form, Effect) or eqn.op.name in _STAYS:
        return False
    return all(_is_pure(inner) for region in eqn.regions for inner in region.eqns)


def _needed(roots: set[Eqn], makers: Mapping[Atom, Eqn]) -> set[Eqn]:
    """The roots, and the invariant equations that they are made of."""
    found = set(roots)
    pending = [atom for eqn in roots for atom in eqn.operands]
    while pending:
        maker = makers.get(pending.pop())
        if maker is not None and maker not in found:
            found.add(maker)
            pending.extend(maker.operands)
    return found


def _stored(eqns: Iterable[Eqn], makers: Mapping[Atom, Eqn]) -> set[Atom]:
    """The invariant values that are in memory whatever they are made of: operands of libraries, and
    captures of loops and branches, that vary.
    """
    found: set[Atom] = set()
    for eqn in eqns:
        form = eqn.op.form
        if isinstance(form, Opaque):
            read: Sequence[Atom] = eqn.operands
        elif isinstance(form, Control):
            read = loop_parts(eqn).captures if is_loop(eqn) else eqn.operands[1:]
        else:
            continue
        found.update(atom for atom in read if atom in makers)
    return found


def _chain(eqn: Eqn, chains: Mapping[Atom, _Chain]) -> _Chain:
    form = eqn.op.form
    if isinstance(form, Elementwise):
        cost = form.cost
    elif form.view or not eqn.operands:
        cost = 0
    else:
        cost = _EXPENSIVE if form.run is not None else len(eqn.operands)
    nbytes = 0
    for atom in dict.fromkeys(eqn.operands):
        if isinstance(atom, Value):
            before = chains.get(atom)
            cost += before.cost if before else 0
            nbytes += before.nbytes if before else atom.type.nbytes
    if isinstance(form, Indexed):
        nbytes = min(nbytes, eqn.outputs[0].type.nbytes)
    return _Chain(cost, nbytes)


def _shrinks(eqn: Eqn) -> bool:
    read, made = (sum(a.type.size for a in atoms) for atoms in (eqn.operands, eqn.outputs))
    return read > made or (read == made and isinstance(eqn.op.form, Call))


def _work(eqn: Eqn) -> float:
    """The elements that an equation computes, each times its cost."""
    form = eqn.op.form
    size = max(value.type.size for value in eqn.outputs)
    if isinstance(form, Elementwise):
        return size * max(form.cost, 1)
    if isinstance(form, Indexed):
        return 0 if form.view else size
    if isinstance(form, (Reduction, Scan)):
        return eqn.operands[0].type.size
    if eqn.op.name == "matmul":
        return size * eqn.operands[0].type.shape[-1]
    return inf
