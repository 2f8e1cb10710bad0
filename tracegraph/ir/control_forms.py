"""Operands and results of ops with regions, by role.

    cond, switch    selector captures…          each region: captures…               -> results…
    while_loop      carry… captures…            condition:   carry… captures…        -> bool[]
                                                body:        carry… captures…        -> carry…
    scan            carry… xs… captures…        body:        carry… slices… captures… -> carry… ys…
    rotated_loop    entry carry… captures…      body:        carry… captures…        -> carry… again

The attributes `carry` and `xs` count the operands of these roles. An operand for which the regions
have no parameter comes first: it selects the branch, or whether a rotated loop is entered at all.
Lowering alone makes rotated loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tracegraph.ir.program import Atom, Eqn, Region, Value
from tracegraph.ir.record import record

_T = TypeVar("_T")


@record
class BranchParts:
    """A cond or switch. Each of the `branches` takes the captures and gives the results."""

    selector: Atom
    captures: tuple[Atom, ...]
    branches: tuple[Region, ...]


@record
class LoopParts:
    """A while_loop, scan or rotated loop.

    `entry` says whether a rotated loop has a first iteration; other loops have none. Only a
    while_loop has a `condition`, only a scan has `xs` and `stacked` results.
    """

    entry: Atom | None
    init: tuple[Atom, ...]
    xs: tuple[Atom, ...]
    captures: tuple[Atom, ...]
    condition: Region | None
    body: Region
    carried: tuple[Value, ...]
    stacked: tuple[Value, ...]

    @property
    def captured_params(self) -> tuple[Value, ...]:
        """The parameters of the body that are bound to the captures."""
        return self.body.params[len(self.init) + len(self.xs) :]


def is_loop(eqn: Eqn) -> bool:
    """Whether an equation that has regions is a loop; else it is a branch."""
    return "carry" in eqn.attrs


def branch_parts(eqn: Eqn) -> BranchParts:
    """The parts of a cond or switch."""
    return BranchParts(eqn.operands[0], eqn.operands[1:], eqn.regions)


def loop_parts(eqn: Eqn) -> LoopParts:
    """The parts of a loop."""
    carry, body = eqn.attrs["carry"], eqn.regions[-1]
    entered = len(eqn.operands) - len(body.params)
    first, init, xs, captures = split(eqn.operands, entered, carry, eqn.attrs.get("xs", 0))
    return LoopParts(
        first[0] if first else None,
        init,
        xs,
        captures,
        eqn.regions[0] if len(eqn.regions) > 1 else None,
        body,
        eqn.outputs[:carry],
        eqn.outputs[carry:],
    )


def loop_counts(eqn: Eqn, carry: int, xs: int = 0) -> Mapping[str, Any]:
    """The attributes of a loop with other numbers of carries and xs."""
    counts = {"carry": carry, "xs": xs} if "xs" in eqn.attrs else {"carry": carry}
    return {**eqn.attrs, **counts}


def split(items: Sequence[_T], *counts: int) -> list[tuple[_T, ...]]:
    """Leading runs of these lengths, then the rest.

    >>> split("abcde", 1, 2)
    [('a',), ('b', 'c'), ('d', 'e')]
    """
    parts, start = [], 0
    for count in counts:
        parts.append(tuple(items[start : start + count]))
        start += count
    return [*parts, tuple(items[start:])]
