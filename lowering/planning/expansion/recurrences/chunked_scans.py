"""Linear recurrences in parallel: first how whole chunks of steps change the carry, then all steps.

A chunk changes h to A h + B, whatever h is at its start. So all chunks compute A and B at the same
time, h at their starts follows from these as a recurrence with a step for each chunk, and then all
chunks make their steps (Blelloch, Prefix sums and their applications, 1990). A step is made twice,
and the steps that wait for one another are few: some multiple of the square root of all.

Products of factors above 1 might overflow where the steps do not. So where factors are not known to
be at most 1, a branch tests that they are, and makes the steps in order otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any

from lowering.plan.target.target import RecurrencePolicy, Target
from lowering.planning.expansion.recurrences.affine_carries import Affine, changes, recurrence
from lowering.planning.expansion.recurrences.intervals import Interval, interval_of, of_constant
from lowering.planning.expansion.sources import at_line
from tracegraph import numpy as tnp
from tracegraph import tree
from tracegraph.control import cond, scan
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import LoopParts, loop_parts, split
from tracegraph.ir.op import Op
from tracegraph.ir.program import Eqn, Literal, Program, Region, Value, walk
from tracegraph.ir.record import record, replace
from tracegraph.ir.types import type_of
from tracegraph.modes import unchanged
from tracegraph.passes import optimize
from tracegraph.passes.rewrite import Defs, Replacement, by_name, inlined, rewrite
from tracegraph.tracing.trace import bind, current_trace, trace_program

Arrays = tuple[Any, ...]


@tree.register_dataclass
@dataclass(frozen=True, slots=True)
class CarryChange:
    """What steps make of an array h of the carry: factor * h + term, or the term alone where `kept`
    is false. The factor may be None for 1, and `kept` None for true.
    """

    factor: Any
    term: Any
    kept: Any

    @staticmethod
    def of(affine: Affine) -> CarryChange:
        """That of one step."""
        return CarryChange(affine.factor, 0 if affine.term is None else affine.term, affine.kept)

    def nothing(self, shape: tuple[int, ...], dtype: Any) -> CarryChange:
        """That of no steps, of the same kind."""
        return CarryChange(
            None if self.factor is None else tnp.ones(shape, dtype),
            tnp.zeros(shape, dtype),
            None if self.kept is None else tnp.ones(shape, bool),
        )

    @property
    def is_small(self) -> Any:
        """Where the factor is at most 1, or an integer."""
        is_number = self.factor is not None and type_of(self.factor).dtype.kind in "fc"
        return tnp.abs(self.factor) <= 1 if is_number else True

    def applied(self, h: Any) -> Any:
        """What becomes of h."""
        moved = h + self.term if self.factor is None else h * self.factor + self.term
        return moved if self.kept is None else tnp.where(self.kept, moved, self.term)

    def then(self, after: CarryChange) -> CarryChange:
        """Both, one after the other, as one."""
        factor = None if self.factor is None else self.factor * after.factor
        kept = None if self.kept is None else self.kept & after.kept
        return CarryChange(factor, after.applied(self.term), kept)


def expand_recurrences(program: Program, target: Target) -> Program:
    """The program with long scans that are linear recurrences in parallel, where the target wants
    that and the user has pinned no schedule.
    """
    policy = target.recurrences
    if policy is None or not any(_may_be(eqn, policy) for eqn in walk(program.body)):
        return program
    given = program.body.params[len(program.inputs) :]
    constants = dict(zip(given, map(of_constant, program.constants), strict=True))
    defs = {value: eqn for eqn in walk(program.body) for value in eqn.outputs}

    def expand(eqn: Eqn, _: Defs) -> Replacement | None:
        if not _may_be(eqn, policy):
            return None
        parts = loop_parts(eqn)
        outer = dict(zip(parts.body.params, eqn.operands, strict=True))

        def known(param: Value) -> Interval | None:
            return interval_of(outer[param], defs, constants.get)

        found = recurrence(parts.body, len(parts.init), known)
        if found is None:
            return None
        parallel = _parallel(eqn, parts, found, policy)
        return inlined(at_line(parallel.body, eqn.source), eqn.operands, eqn.outputs)

    return rewrite(program, lambda: by_name({"scan": expand}), only_regions=True)


def _may_be(eqn: Eqn, policy: RecurrencePolicy) -> bool:
    """Whether an equation is a long scan of a small carry, with no schedule pinned."""
    if eqn.op.name != "scan" or eqn.hints.schedule is not None:
        return False
    return policy.prefers(eqn.attrs["length"], _elements(loop_parts(eqn)))


def _elements(parts: LoopParts) -> int:
    return sum([atom.type.size for atom in parts.init])


@record
class _Recurrence:
    """`step(carry, slices)` returns the next carry and what is stacked, and `change(slices)` how
    the arrays of the carry change. `kinds` has the changes without values.

    Where it is not `stable`, factors may be above 1.
    """

    step: Callable[[Arrays, Arrays], tuple[Arrays, Arrays]]
    change: Callable[[Arrays], Sequence[CarryChange]]
    kinds: tuple[CarryChange, ...]
    stacks: bool
    stable: bool = True


@record
class _Steps:
    """The number of steps, and of elements of the carry; `reverse`: the last step comes first."""

    length: int
    reverse: bool
    elements: int
    policy: RecurrencePolicy

    def all(self, of: _Recurrence, init: Arrays, xs: Arrays) -> tuple[Arrays, Arrays]:
        """The last carry and what is stacked, one step after the other."""
        return scan(of.step, init, xs, self.length, self.reverse)


def _parallel(
    eqn: Eqn, parts: LoopParts, found: Sequence[Affine], policy: RecurrencePolicy
) -> Program:
    """The program in place of a scan."""
    body, carry = parts.body, len(parts.init)
    types = [atom.type.strong() for atom in eqn.operands]

    def run(*operands: Any) -> Arrays:
        init, xs, captures = split(operands, carry, len(parts.xs))

        def step(state: Arrays, slices: Arrays) -> tuple[Arrays, Arrays]:
            results = _evaluated(body, (*state, *slices, *captures))
            return results[:carry], results[carry:]

        def change(slices: Arrays) -> list[CarryChange]:
            made = changes(body, carry, (*init, *slices, *captures), _compute)
            return [CarryChange.of(each) for each in made or ()]

        kinds = tuple(map(CarryChange.of, found))
        stable = all(each.is_stable for each in found)
        whole = _Recurrence(step, change, kinds, bool(parts.stacked), stable)
        steps = _Steps(eqn.attrs["length"], eqn.attrs["reverse"], _elements(parts), policy)
        last, stacked = _in_chunks(whole, init, xs, steps)
        return (*last, *stacked)

    with unchanged():
        return optimize(trace_program(run, types, "scan"))


def _in_chunks(of: _Recurrence, init: Arrays, xs: Arrays, steps: _Steps) -> tuple[Arrays, Arrays]:
    """The last carry and what is stacked, as `scan` returns them."""
    from tracegraph.transforms.batching.vmap import vmap  # few programs need it

    length, reverse, policy = steps.length, steps.reverse, steps.policy
    if not policy.prefers(length, steps.elements):
        return steps.all(of, init, xs)
    size = policy.chunk(length, steps.elements)
    count, rest = divmod(length, size)
    first = rest if reverse else 0
    chunks = [x[first : first + count * size].reshape(count, size, *x.shape[1:]) for x in xs]

    def total(none: Arrays, small: Arrays, *chunk: Any) -> tuple[Arrays, Arrays]:
        """The changes of all steps of a chunk together, and where no factor was above 1."""

        def advance(sofar: tuple[Arrays, Arrays], slices: Arrays) -> tuple[Any, None]:
            made = of.change(slices)
            both = zip(sofar[0], made, strict=True)
            still = zip(sofar[1], made, strict=True) if small else ()
            return (
                tuple([before.then(after) for before, after in both]),
                tuple([flags & after.is_small for flags, after in still]),
            ), None

        found: tuple[Arrays, Arrays] = scan(advance, (none, small), chunk, size, reverse)[0]
        return found

    def run(start: Arrays, *chunk: Any) -> tuple[Arrays, Arrays]:
        return scan(of.step, start, chunk, size, reverse)

    # arrays of each chunk, also where factors are the same for all of them: each has a thread
    both = list(zip(of.kinds, init, strict=True))
    none = tuple([kind.nothing((count, *h.shape), h.dtype) for kind, h in both])
    small = () if of.stable else tuple([tnp.ones((count, *h.shape), bool) for h in init])
    totals, small = vmap(total, axis_size=count)(none, small, *chunks)

    def finish() -> tuple[Arrays, Arrays]:
        among = replace(steps, length=count)
        leaves, structure = tree.flatten(totals)
        last, starts = _in_chunks(_of_totals(of.kinds, structure), init, tuple(leaves), among)
        stacked: Arrays = ()
        if of.stacks:
            ends, parts = vmap(run, axis_size=count)(starts, *chunks)
            last = tuple([x[0 if reverse else -1] for x in ends])
            stacked = tuple([y.reshape(count * size, *y.shape[2:]) for y in parts])
        if not rest:
            return last, stacked
        left = tuple([x[:rest] if reverse else x[length - rest :] for x in xs])
        last, more = replace(steps, length=rest).all(of, last, left)
        both = zip(more, stacked, strict=True) if reverse else zip(stacked, more, strict=True)
        return last, tuple([tnp.concatenate(pair) for pair in both])

    if of.stable:
        return finish()
    all_small = reduce(and_, [flags.all() for flags in small])
    found: tuple[Arrays, Arrays] = cond(all_small, finish, lambda: steps.all(of, init, xs))
    return found


def _of_totals(kinds: tuple[CarryChange, ...], structure: tree.Structure) -> _Recurrence:
    """From the changes of chunks to the carry at the start of each."""

    def change(slices: Arrays) -> Sequence[CarryChange]:
        found: Sequence[CarryChange] = tree.unflatten(structure, slices)
        return found

    def step(state: Arrays, slices: Arrays) -> tuple[Arrays, Arrays]:
        pairs = zip(state, change(slices), strict=True)
        return tuple([change.applied(h) for h, change in pairs]), state

    return _Recurrence(step, change, kinds, stacks=True)


def _evaluated(body: Region, values: Sequence[Any]) -> Arrays:
    """The results of a region for values of its parameters."""
    env: dict[Any, Any] = dict(zip(body.params, values, strict=True))

    def value(atom: Any) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    for eqn in body.eqns:
        found = _compute(eqn.op, list(map(value, eqn.operands)), eqn.attrs)
        env.update(zip(eqn.outputs, found if len(eqn.outputs) > 1 else (found,), strict=True))
    return tuple(map(value, body.results))


def _compute(op: Op, values: Sequence[Any], attrs: Any) -> Any:
    trace = current_trace()
    assert trace is not None
    return bind(trace, op, values, attrs)
