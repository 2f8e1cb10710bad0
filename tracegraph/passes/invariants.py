"""Loop-invariant code: what each step of a loop would compute again, and whether that costs enough.

An equation is *invariant* if all its operands are: captures of the loop, literals, and results of
invariant equations. Effects are not, nor callbacks.

Not all that is invariant is worth a place in memory: kernels compute views, broadcasts and cheap
arithmetic where they are used, without any. What moves are the *roots*, with everything that they
are computed from:

- factorizations, products, transforms, sorts, running folds, scatters, kernels of users;
- folds, loops and branches;
- elementwise values and gathers that take no more memory than what they are read from, if they are
  expensive (a transcendental function), or stored in every step anyway, because a library or an
  inner loop reads them. `Motion.cheap` says that all others move as well, as on a host, where each
  op is a call; and those that take more memory, if it is little. It is the sum along a chain of ops
  that counts.

What is not a root stays in the loop, and is also computed outside if a root needs it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import inf

from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import is_loop, loop_parts
from tracegraph.ir.op import (
    Call,
    Control,
    Effect,
    Elementwise,
    Indexed,
    Opaque,
    Reduction,
    Scan,
)
from tracegraph.ir.program import Atom, Eqn, Literal, Value
from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType

_EXPENSIVE = 8
"""The work of an element, in units of `Elementwise.cost`, that is worth a load: a transcendental
function. A gather counts as much: it loads an index first."""

_MANY_STEPS = 32
"""Steps from which an expensive element is worth a kernel of its own before the loop: that takes
some 0.9 µs, and 30 ns less a step (H100)."""

_STEPS_IN_VAIN = 16
"""Steps for which `Motion.in_vain` is done once more: a step of a loop takes three times as long
(H100)."""

_SMALL_BYTES = 1 << 15
"""Where ops are calls, what takes no more than that moves, however little it is made of."""

_EXPENSIVE_BYTES = 1 << 22
"""The same for what is expensive: a transcendental function takes some 10 ns an element, a load of
one that is in a cache 1 ns."""

_STAYS = frozenset({"pure_callback"})
"""Ops that users see when they run."""


@record
class Motion:
    """What moves out of loops.

    `cheap`: elementwise values move however little there is to compute. `in_vain` is the work, in
    elements times `Elementwise.cost`, that may be done for a loop without steps or a branch that is
    not taken; what takes longer is guarded by a branch, or else stays: without `guards`, loops that
    may have no steps keep all but what their conditions compute. `kept` is the work from which what
    a branch computes in some steps is computed in the first of these, and kept (`once`).
    """

    cheap: bool = False
    in_vain: float = 0
    guards: bool = False
    kept: float = inf


CERTAIN = Motion()
"""What is computed in any case moves, if it is expensive."""


@dataclass(slots=True)
class Found:
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
class Search:
    """Finds what moves out of a loop of that many steps, None if their number is unknown."""

    motion: Motion
    steps: int | None

    @property
    def in_vain(self) -> float:
        """The work that may be done for branches that are not taken: more if the loop is long, so
        that it takes a small part of its time.
        """
        return self.motion.in_vain * max((self.steps or 0) / _STEPS_IN_VAIN, 1)

    def of(self, eqns: Sequence[Eqn], captured: Iterable[Value], most: float = inf) -> Found | None:
        """What moves of the equations of a region, given the parameters that are invariant; None if
        nothing does. At most so much work in all.
        """
        invariant: set[Atom] = set(captured)
        makers: dict[Atom, Eqn] = {}
        for eqn in eqns:
            if is_invariant(eqn, invariant):
                invariant.update(eqn.outputs)
                makers.update(dict.fromkeys(eqn.outputs, eqn))
        roots = self._roots(eqns, makers) if makers else set()
        if roots and most < inf:
            roots = _within(roots, eqns, makers, most)
        if not roots:
            return None
        needed = _needed(roots, makers)
        return Found(
            [eqn for eqn in eqns if eqn in needed],
            [value for eqn in eqns if eqn in roots for value in eqn.outputs],
            sum(map(work_of, needed)),
            [eqn for eqn in eqns if eqn not in roots],
        )

    def _roots(self, eqns: Sequence[Eqn], makers: Mapping[Atom, Eqn]) -> set[Eqn]:
        stored: set[Atom] | None = None
        chains: dict[Atom, _Chain] = {}
        roots: set[Eqn] = set()
        for eqn in dict.fromkeys(makers.values()):
            if isinstance(eqn.op.form, (Elementwise, Indexed)):
                (out,) = eqn.outputs
                chain = _chain(eqn, chains)
                chains[out] = chain
                if not chain.cost:
                    continue
                if stored is None:
                    stored = _stored(eqns, makers)
                if not self._is_worth_memory(out.type, chain, out in stored):
                    continue
                del chains[out]
            elif isinstance(eqn.op.form, Reduction | Call) and not _shrinks(eqn):
                continue
            if any(value.type.size for value in eqn.outputs):
                roots.add(eqn)
        return roots

    def _is_worth_memory(self, out: ArrayType, chain: _Chain, is_stored: bool) -> bool:
        """Whether an elementwise value is loaded faster than it is computed."""
        fits = out.nbytes <= chain.nbytes
        if self.motion.cheap:
            most = _EXPENSIVE_BYTES if chain.cost >= _EXPENSIVE else _SMALL_BYTES
            return fits or out.nbytes <= most
        if is_stored and fits:
            return True
        expensive = chain.cost >= _EXPENSIVE and out.nbytes <= 2 * chain.nbytes
        return expensive and (self.steps is None or self.steps >= _MANY_STEPS)


def are_invariant(atoms: Iterable[Atom], invariant: Container[Atom]) -> bool:
    """Whether all are, given the values that are known to be."""
    for atom in atoms:  # noqa: SIM110  (most end at the first: a loop takes a third of the time)
        if atom not in invariant and not isinstance(atom, Literal):
            return False
    return True


def is_invariant(eqn: Eqn, invariant: Container[Atom]) -> bool:
    """Whether an equation is, given the values that are known to be."""
    return are_invariant(eqn.operands, invariant) and _is_pure(eqn)


def _is_pure(eqn: Eqn) -> bool:
    if isinstance(eqn.op.form, Effect) or eqn.op.name in _STAYS:
        return False
    return not eqn.regions or all(
        _is_pure(inner) for region in eqn.regions for inner in region.eqns
    )


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


def _within(
    roots: set[Eqn], eqns: Sequence[Eqn], makers: Mapping[Atom, Eqn], most: float
) -> set[Eqn]:
    """The first of the roots that take no more work than that together."""
    found: set[Eqn] = set()
    taken: set[Eqn] = set()
    for eqn in eqns:
        if eqn in roots:
            more = _needed({eqn}, makers) - taken
            work = sum(map(work_of, more))
            if work <= most:
                most -= work
                taken |= more
                found.add(eqn)
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
    assert isinstance(form, (Elementwise, Indexed))
    if isinstance(form, Elementwise):
        cost = form.cost
    elif not form.view and eqn.operands:
        cost = _EXPENSIVE if form.run is not None else len(eqn.operands)
    else:
        cost = 0
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


def work_of(eqn: Eqn) -> float:
    """The elements that an equation computes, each times its cost; infinite if there is no
    estimate.
    """
    form = eqn.op.form
    size = max([value.type.size for value in eqn.outputs], default=0)
    if isinstance(form, Elementwise):
        return size * max(form.cost, 1)
    if isinstance(form, Indexed):
        return 0 if form.view else size
    if isinstance(form, (Reduction, Scan)):
        return eqn.operands[0].type.size
    if eqn.op.name == "matmul":
        return size * eqn.operands[0].type.shape[-1]
    return inf
