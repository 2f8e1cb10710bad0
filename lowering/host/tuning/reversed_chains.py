"""Calls on reversed views alone: done from the first element to the last, and their results seen
from the last to the first.

NumPy's loops are vectorised for elements that follow each other; what reads in one direction and
writes in the other takes about as long as a copy more. So of a chain of calls on reversed views, no
more than the last should turn its elements round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from lowering.host import numpy_calls as functions
from lowering.host.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
    backwards,
    memory_order,
    reversed_view,
)
from lowering.host.tuning.reversed_views import LEAST_ELEMENTS

_Bases = Mapping[NumpyValue, tuple[Temporary, frozenset[int]]]
"""Of a value that is made in the other direction: what holds it, and the dimensions to reverse."""


def chains_forwards(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The instructions, with those that read only reversed elements done the other way round; none
    if there are none of those.
    """
    bases: dict[NumpyValue, tuple[Temporary, frozenset[int]]] = {}
    seen: dict[tuple[NumpyValue, frozenset[int]], NumpyValue] = {}
    result: list[Instruction] = []
    for each in instructions:
        output = each.output
        along = frozenset[int]()
        if isinstance(output, Temporary) and functions.is_pointwise(each):
            along = _direction(output.shape, each.inputs, bases)
        if along:
            assert isinstance(output, Temporary)
            base = Temporary(output.dtype, output.shape, output.dims, output.order)
            bases[output], output = (base, along), base
        inputs = tuple(_seen(register, along, bases, seen) for register in each.inputs)
        result.append(replace(each, inputs=inputs, output=output))
    return result if bases else []


def count_reversals(instructions: Sequence[Instruction]) -> int:
    """How many calls read and write many elements in different directions.

    Not copies to another order of memory, which take no longer for it.
    """
    turns = 0
    for each in instructions:
        output = each.output
        if output is None or prod(output.shape) < LEAST_ELEMENTS:
            continue
        orders = {memory_order(register) for register in (*each.inputs, output)}
        across = each.function is functions.store and len(orders) > 1
        if functions.is_pointwise(each) and not across and _turns(each, output):
            turns += 2 if each.function is functions.where else 1
    return turns


def _turns(instruction: Instruction, output: NumpyValue) -> bool:
    registers = [*instruction.inputs, output]
    return any(
        len({dim in _backwards(r, {}) for r in registers if r.shape and r.shape[dim] > 1}) > 1
        for dim, extent in enumerate(output.shape)
        if extent > 1
    )


def _direction(shape: Sequence[int], inputs: Iterable[NumpyValue], bases: _Bases) -> frozenset[int]:
    """The dimensions along which all inputs that have more than one element there are reversed.

    None if there is an input that can be seen in no other way.
    """
    large = [register for register in inputs if register.shape]
    if any(isinstance(register, DynamicView) for register in large):
        return frozenset()
    return frozenset(
        dim
        for dim, extent in enumerate(shape)
        if extent > 1 and all(dim in _backwards(r, bases) for r in large if r.shape[dim] > 1)
    )


def _backwards(register: NumpyValue, bases: _Bases) -> frozenset[int]:
    """The dimensions along which later elements lie before earlier ones, or will."""
    return bases[register][1] if register in bases else backwards(register)


def _seen(
    register: NumpyValue,
    along: frozenset[int],
    bases: _Bases,
    seen: dict[tuple[NumpyValue, frozenset[int]], NumpyValue],
) -> NumpyValue:
    """A register as a call reads it that goes backwards `along` these dimensions."""
    base: NumpyValue
    if isinstance(register, ReversedTemporary):
        base, mirrored = register.base, register.along
    else:
        base, mirrored = bases.get(register, (register, frozenset()))
    turned = frozenset(d for d in along ^ mirrored if base.shape and base.shape[d] > 1)
    if not turned:
        return base
    key = base, turned
    if key not in seen:
        if isinstance(base, View):
            seen[key] = reversed_view(base, turned)
        else:
            assert isinstance(base, Temporary)
            seen[key] = ReversedTemporary.of(base, turned)
    return seen[key]
