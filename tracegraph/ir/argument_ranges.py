"""Ranges of Python ints among a program's inputs: each must fit the integer dtypes that it meets.

A Python int that a function is called with is an input of a weak type. Where it meets an array of a
narrower integer dtype, it is cast. A cast wraps, but NumPy raises an error for such an int, so its
value is checked at the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tracegraph.ir.op import Call
from tracegraph.ir.program import Eqn, Program, Region, Value
from tracegraph.ir.record import record
from tracegraph.user_source import Source


@record
class ArgumentRange:
    """The values that a Python int may have, for input number `position`.

    `dtype` is the narrowest that it meets, at the line `source`.
    """

    position: int
    values: range
    dtype: np.dtype[Any]
    source: Source | None


INT64 = range(-(2**63), 2**63)
"""The values of int64, the dtype of a Python int that meets no other."""


def argument_ranges(program: Program) -> tuple[ArgumentRange, ...]:
    """The ranges of those inputs that are Python ints and meet another integer dtype.

    Inputs are followed into branches and loops, there also as the first value of a carry.
    """
    positions = {
        value: i
        for i, value in enumerate(program.inputs)
        if value.type.weak and value.type.dtype.kind in "iu"
    }
    found: dict[int, ArgumentRange] = {}
    if positions:
        _follow(program.body, positions, found)
    return tuple(found.values())


def _follow(
    region: Region, positions: Mapping[Value, int], found: dict[int, ArgumentRange]
) -> None:
    for eqn in region.eqns:
        if not positions.keys().isdisjoint(eqn.operands):
            if eqn.op.name == "cast":
                _meet(eqn, positions[eqn.operands[0]], found)  # type: ignore[index]
            for inner in _run_regions(eqn):
                given = _given(eqn, inner)
                known = {p: positions[a] for p, a in given if a in positions}
                _follow(inner, known, found)


def _run_regions(eqn: Eqn) -> tuple[Region, ...]:
    """The regions that run: of a call of a function with rules, the function alone."""
    return eqn.regions[:1] if isinstance(eqn.op.form, Call) else eqn.regions


def _given(eqn: Eqn, inner: Region) -> Sequence[tuple[Value, Any]]:
    """The parameters of a region with the operands that they stand for, or start as."""
    selectors = len(eqn.operands) - len(inner.params)
    return list(zip(inner.params, eqn.operands[selectors:], strict=True))


def _meet(eqn: Eqn, position: int, found: dict[int, ArgumentRange]) -> None:
    """Narrow the range of an input by a cast. Casts that a user asks for are not weak, and wrap."""
    dtype = eqn.attrs["dtype"]
    if not eqn.attrs.get("weak") or dtype.kind not in "iu":
        return
    known = found.get(position)
    values = _values_of(dtype)
    if known is not None:
        values = range(
            max(values.start, known.values.start), max(0, min(values.stop, known.values.stop))
        )
        if values == known.values:
            return
    found[position] = ArgumentRange(position, values, dtype, eqn.source)


@cache
def _values_of(dtype: np.dtype[Any]) -> range:
    limits = np.iinfo(dtype)
    return range(int(limits.min), int(limits.max) + 1)
