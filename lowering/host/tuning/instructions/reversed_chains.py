"""Negative-stride normalisation of chains of calls that read only reversed values.

Such a chain computes on the elements in memory order, and its result is read with negative strides.
NumPy vectorises loops whose strides have one sign; a call that reads and writes in opposite
directions takes about a copy longer. After normalisation only the last call of a chain does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.tuning.instructions.memory_orders import (
    memory_order,
    negative_dims,
    reversed_view,
)
from lowering.host.tuning.instructions.pointwise import is_pointwise

LEAST_ELEMENTS = 256
"""Least elements: with fewer, the call of the copy takes longer than the strides cost. Two products
of float32 break even between 256 and 1024; slower functions do earlier."""

_Bases = Mapping[NumpyValue, tuple[Temporary, frozenset[int]]]
"""For a normalised value: the temporary that holds it, and the dimensions reversed in that."""


def normalize_chains(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The instructions with all chains normalised; empty if there are no chains."""
    bases: dict[NumpyValue, tuple[Temporary, frozenset[int]]] = {}
    views: dict[tuple[NumpyValue, frozenset[int]], NumpyValue] = {}
    result: list[Instruction] = []
    for each in instructions:
        output = each.output
        along = frozenset[int]()
        if isinstance(output, Temporary) and is_pointwise(each):
            along = _direction(output.shape, each.inputs, bases)
        if along:
            assert isinstance(output, Temporary)
            base = Temporary(output.dtype, output.shape, output.dims, output.order)
            bases[output], output = (base, along), base
        inputs = tuple(_as_read(value, along, bases, views) for value in each.inputs)
        result.append(replace(each, inputs=inputs, output=output))
    return result if bases else []


def count_reversals(instructions: Sequence[Instruction]) -> int:
    """How many calls read and write many elements in opposite directions.

    Transposing copies do not count: a direction makes no difference to them.
    """
    reversals = 0
    for each in instructions:
        output = each.output
        if output is None or prod(output.shape) < LEAST_ELEMENTS:
            continue
        orders = {memory_order(value) for value in (*each.inputs, output)}
        transposes = each.function is numpy_calls.store and len(orders) > 1
        if is_pointwise(each) and not transposes and _reverses(each, output):
            reversals += 2 if each.function is numpy_calls.where else 1
    return reversals


def _reverses(instruction: Instruction, output: NumpyValue) -> bool:
    values = [*instruction.inputs, output]
    return any(
        len({dim in _negative_dims(r, {}) for r in values if r.shape and r.shape[dim] > 1}) > 1
        for dim, extent in enumerate(output.shape)
        if extent > 1
    )


def _direction(shape: Sequence[int], inputs: Iterable[NumpyValue], bases: _Bases) -> frozenset[int]:
    """The dimensions along which all inputs of more than one element are reversed.

    None if an input is a dynamic view: its direction cannot be changed.
    """
    large = [value for value in inputs if value.shape]
    if any(isinstance(value, DynamicView) for value in large):
        return frozenset()
    return frozenset(
        dim
        for dim, extent in enumerate(shape)
        if extent > 1 and all(dim in _negative_dims(r, bases) for r in large if r.shape[dim] > 1)
    )


def _negative_dims(value: NumpyValue, bases: _Bases) -> frozenset[int]:
    """The dimensions with a negative stride, after normalisation."""
    return bases[value][1] if value in bases else negative_dims(value)


def _as_read(
    value: NumpyValue,
    along: frozenset[int],
    bases: _Bases,
    views: dict[tuple[NumpyValue, frozenset[int]], NumpyValue],
) -> NumpyValue:
    """A value as a call reads it that is normalised `along` these dimensions."""
    base: NumpyValue
    if isinstance(value, ReversedTemporary):
        base, reversed_ = value.base, value.along
    else:
        base, reversed_ = bases.get(value, (value, frozenset()))
    changed = frozenset(d for d in along ^ reversed_ if base.shape and base.shape[d] > 1)
    if not changed:
        return base
    key = base, changed
    if key not in views:
        if isinstance(base, View):
            views[key] = reversed_view(base, changed)
        else:
            assert isinstance(base, Temporary)
            views[key] = ReversedTemporary.of(base, changed)
    return views[key]
