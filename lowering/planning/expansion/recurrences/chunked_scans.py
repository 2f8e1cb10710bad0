"""Linear recurrences in parallel: first how whole chunks of steps change the carry, then all steps.

A chunk changes h to A h + B, whatever h is at its start. So all chunks compute A and B at the same
time, h at their starts follows from these as a recurrence with a step for each chunk, and then all
chunks make their steps (Blelloch, Prefix sums and their applications, 1990). A step is made twice,
and the steps that wait for one another are few: some multiple of the square root of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lowering.plan.target.target import RecurrencePolicy, Target
from lowering.planning.expansion.recurrences.affine_carries import Affine, changes, recurrence
from lowering.planning.expansion.recurrences.intervals import Interval, interval_of, of_constant
from lowering.planning.expansion.sources import at_line
from tracegraph import numpy as tnp
from tracegraph.control import scan
from tracegraph.ir.control_forms import LoopParts, loop_parts, split
from tracegraph.ir.op import Op
from tracegraph.ir.program import Eqn, Literal, Program, Region, Value, walk
from tracegraph.ir.record import record
from tracegraph.passes import optimize
from tracegraph.passes.rewrite import Defs, Replacement, by_name, inlined, rewrite
from tracegraph.tracing.trace import bind, current_trace, trace_program

Arrays = tuple[Any, ...]
Change = tuple[Any, Any]
"""The factor, or None for 1, and the term of an array of the carry."""


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
    the arrays of the carry change, which are `scaled` if they have factors.
    """

    step: Callable[[Arrays, Arrays], tuple[Arrays, Arrays]]
    change: Callable[[Arrays], Sequence[Change]]
    scaled: tuple[bool, ...]
    stacks: bool


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

        def change(slices: Arrays) -> list[Change]:
            made = changes(body, carry, (*init, *slices, *captures), _compute)
            return [(each.factor, 0 if each.term is None else each.term) for each in made or ()]

        scaled = tuple([each.factor is not None for each in found])
        whole = _Recurrence(step, change, scaled, bool(parts.stacked))
        length, reverse = eqn.attrs["length"], eqn.attrs["reverse"]
        last, stacked = _in_chunks(whole, init, xs, length, reverse, policy, _elements(parts))
        return (*last, *stacked)

    return optimize(trace_program(run, types, "scan"))


def _in_chunks(
    of: _Recurrence,
    init: Arrays,
    xs: Arrays,
    length: int,
    reverse: bool,
    policy: RecurrencePolicy,
    elements: int,
) -> tuple[Arrays, Arrays]:
    """The last carry and what is stacked, as `scan` returns them."""
    from tracegraph.transforms.batching.vmap import vmap  # few programs need it

    if not policy.prefers(length, elements):
        return scan(of.step, init, xs, length, reverse)
    size = policy.chunk(length, elements)
    count, rest = divmod(length, size)
    first = rest if reverse else 0
    chunks = [x[first : first + count * size].reshape(count, size, *x.shape[1:]) for x in xs]

    def total(none: list[Change], *chunk: Any) -> Arrays:
        """The factors and terms of all steps of a chunk together."""

        def advance(changed: list[Change], slices: Arrays) -> tuple[list[Change], None]:
            pairs = zip(changed, of.change(slices), strict=True)
            return [_together(before, after) for before, after in pairs], None

        whole, _ = scan(advance, none, chunk, size, reverse)
        return tuple([part for change in whole for part in change if part is not None])

    def run(start: Arrays, *chunk: Any) -> tuple[Arrays, Arrays]:
        return scan(of.step, start, chunk, size, reverse)

    none = [_no_change(h, count, scaled) for h, scaled in zip(init, of.scaled, strict=True)]
    totals = vmap(total, axis_size=count)(none, *chunks)
    of_chunks = _of_totals(of.scaled)
    last, starts = _in_chunks(of_chunks, init, totals, count, reverse, policy, elements)
    stacked: Arrays = ()
    if of.stacks:
        ends, parts = vmap(run, axis_size=count)(starts, *chunks)
        last = tuple([x[0 if reverse else -1] for x in ends])
        stacked = tuple([y.reshape(count * size, *y.shape[2:]) for y in parts])
    if not rest:
        return last, stacked
    left = tuple([x[:rest] if reverse else x[length - rest :] for x in xs])
    last, more = scan(of.step, last, left, rest, reverse)
    both = zip(more, stacked, strict=True) if reverse else zip(stacked, more, strict=True)
    return last, tuple([tnp.concatenate(pair) for pair in both])


def _of_totals(scaled: tuple[bool, ...]) -> _Recurrence:
    """From the changes of chunks to the carry at the start of each."""

    def change(slices: Arrays) -> list[Change]:
        each = iter(slices)
        return [(next(each) if has_factor else None, next(each)) for has_factor in scaled]

    def step(state: Arrays, slices: Arrays) -> tuple[Arrays, Arrays]:
        pairs = zip(state, change(slices), strict=True)
        return tuple([_changed(h, change) for h, change in pairs]), state

    return _Recurrence(step, change, scaled, stacks=True)


def _no_change(h: Any, count: int, is_scaled: bool) -> Change:
    """One for each chunk, also where factors are the same for all of them: each has a thread."""
    shape = (count, *h.shape)
    return tnp.ones(shape, h.dtype) if is_scaled else None, tnp.zeros(shape, h.dtype)


def _together(before: Change, after: Change) -> Change:
    """Two changes as one."""
    factor, term = before
    by = after[0]
    return None if factor is None else factor * by, _changed(term, after)


def _changed(h: Any, change: Change) -> Any:
    factor, term = change
    return h + term if factor is None else h * factor + term


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
