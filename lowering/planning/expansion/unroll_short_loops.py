"""Complete unrolling: a short loop of known length becomes its steps, before there are kernels.

The steps are equations of the region around the loop. So they are simplified, inlined and fused as
if the user had written them one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from lowering.plan.construct import Construct, Inlined, Part
from lowering.plan.target.overrides import Choices, declared
from lowering.plan.target.target import Costs
from lowering.planning.expansion.equation_costs import is_free
from tracegraph.ir.control_forms import loop_parts, split
from tracegraph.ir.program import (
    Atom,
    Eqn,
    Literal,
    Program,
    Region,
    Value,
    application,
    has_regions,
    walk,
)
from tracegraph.ir.record import replace
from tracegraph.passes import optimize
from tracegraph.passes.rewrite import Defs, Replacement, Rule, by_name, inlined, rewrite

SHORT = 8
"""Steps of a loop that is unrolled completely, unless the user asks for it."""

MOST_EQUATIONS = 128
"""Equations that compute something, in all steps together: to plan one takes about 30 µs."""

_LOOPS = ("while_loop", "scan")


def unroll(program: Program, costs: Costs) -> Program:
    """The program without the loops that are short, or that the user wants unrolled completely."""
    if not has_regions(program.body):
        return program
    choices = declared()
    rules: dict[str, Rule] = {name: partial(_unrolled, costs, choices) for name in _LOOPS}
    found = rewrite(program, lambda: by_name(rules), only_regions=True)
    if found is program:
        return program
    known = [region for eqn in walk(program.body) for region in eqn.regions]
    return optimize(found, known)


def _unrolled(costs: Costs, choices: Choices, eqn: Eqn, defs: Defs) -> Replacement | None:
    steps = eqn.attrs.get("trip_count", eqn.attrs.get("length"))
    body = eqn.regions[-1]
    if not steps or not _is_wanted(eqn, steps, costs, choices):
        return None
    if any(inner.op.name in _LOOPS for inner in walk(body)):
        return None
    pinned = "asked for" if eqn.hints.schedule else "a few steps, known in number"
    construct = Construct(
        eqn.hints.construct or eqn.op.name, "unrolled", pinned, copies=0, steps=steps
    )
    sources = () if eqn.source is None else (eqn.source,)
    steps_of = _scan_steps if eqn.op.name == "scan" else _while_steps
    return steps_of(eqn, _tagged(body, Part(Inlined(construct, 1, True, sources), 0)), steps)


def _is_wanted(eqn: Eqn, steps: int, costs: Costs, choices: Choices) -> bool:
    """Whether a loop of a known number of steps is to be unrolled completely."""
    schedule, factor = eqn.hints.schedule, eqn.hints.unroll
    if schedule is None:
        schedule, factor = choices.loops, choices.unroll
        if schedule is None and costs.control_is_free:
            return False
    if schedule == "unrolled" and factor is not None:
        return steps <= factor
    if schedule not in (None, "unrolled"):
        return False
    counter = "trip_count" in eqn.attrs  # its next value is computed by the body
    each = sum(not is_free(inner) for inner in walk(eqn.regions[-1])) - counter
    return steps <= SHORT and steps * each <= MOST_EQUATIONS


def _tagged(body: Region, part: Part) -> Region:
    """The body, whose lines say that they come from an unrolled loop."""

    def tagged(eqn: Eqn) -> Eqn:
        source = eqn.source
        if source is None:
            return eqn
        return replace(eqn, source=source._replace(within=(part, *source.within)))

    return replace(body, eqns=tuple(map(tagged, body.eqns)))


def _while_steps(eqn: Eqn, body: Region, steps: int) -> Replacement:
    parts = loop_parts(eqn)
    state = parts.init
    eqns: list[Eqn] = []
    for _ in range(steps):
        step = inlined(body, (*state, *parts.captures))
        eqns += step.eqns
        state = step.atoms
    return Replacement(state, tuple(eqns))


def _scan_steps(eqn: Eqn, body: Region, steps: int) -> Replacement:
    parts = loop_parts(eqn)
    state = parts.init
    eqns: list[Eqn] = []
    rows: list[Sequence[Atom]] = []
    for at in range(steps):
        at = steps - 1 - at if eqn.attrs["reverse"] else at
        slices = [_row(x, at, eqn, eqns) for x in parts.xs]
        step = inlined(body, (*state, *slices, *parts.captures))
        eqns += step.eqns
        state, row = split(step.atoms, len(state))
        rows.append(row)
    if eqn.attrs["reverse"]:
        rows.reverse()
    stacked = [_stacked(column, eqn, eqns) for column in zip(*rows, strict=True)]
    return Replacement((*state, *stacked), tuple(eqns))


def _row(x: Atom, at: int, origin: Eqn, eqns: list[Eqn]) -> Value:
    """x[at], a view."""
    shape = x.type.shape[1:]
    attrs = {
        "starts": (at, *(0 for _ in shape)),
        "steps": (1,) * (len(shape) + 1),
        "sizes": (1, *shape),
    }
    part = _emit("slice", (x,), attrs, origin, eqns)
    return _emit("reshape", (part,), {"shape": shape}, origin, eqns)


def _stacked(rows: Sequence[Atom], origin: Eqn, eqns: list[Eqn]) -> Value:
    """The rows as one array along a new first axis."""
    parts = []
    for row in rows:
        name = "broadcast_to" if isinstance(row, Literal) else "reshape"
        parts.append(_emit(name, (row,), {"shape": (1, *row.type.shape)}, origin, eqns))
    return _emit("concatenate", tuple(parts), {"axis": 0}, origin, eqns)


def _emit(
    name: str, operands: tuple[Atom, ...], attrs: Mapping[str, object], origin: Eqn, eqns: list[Eqn]
) -> Value:
    eqns.append(application(name, operands, attrs, origin.source))
    return eqns[-1].outputs[0]
