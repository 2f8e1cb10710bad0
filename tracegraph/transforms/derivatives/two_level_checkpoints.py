"""Two-level checkpointing of long loops: the root of the memory for computing each step twice.

    scan of N steps   ->   scan of about √N segments, each a checkpointed scan of about √N steps
    while_loop of     ->   while_loop of at most √N segments, each a checkpointed while_loop of at
    at most N steps        most √N steps, which ends when the whole loop does

Of each segment the carry is kept. Backwards, a segment runs again and stacks its steps. Griewank
(1992) has more levels, for less memory still; two run without a decision in any step. A user may
choose the number of segments, which are the checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt
from typing import Any

import numpy as np

from tracegraph.ir.control_forms import loop_counts, loop_parts, split
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Hints, Region, Value
from tracegraph.ir.record import replace
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import region_of
from tracegraph.transforms.derivatives.reverse_loops import NUMBER
from tracegraph.transforms.functions_with_rules import run_region
from tracegraph.transforms.trace_emitter import Emit

Body = Callable[[Trace, list[Tracer]], Sequence[Any]]

BUDGET = 256 * 2**20
"""Bytes that a loop may stack for its derivative."""

_FEWEST = 16
"""Steps of a loop that is worth cutting into segments."""


def needs_segments(eqn: Eqn, stacked: Sequence[Value]) -> bool:
    """Whether a loop is to be cut: if the values that it would stack in each step exceed the
    budget, or if the user asks for fewer checkpoints than there are steps.
    """
    length, checkpoints = _length(eqn), eqn.hints.checkpoints
    if checkpoints is not None:
        return checkpoints < length
    size = length * sum(value.type.nbytes for value in stacked)
    return size > BUDGET and length >= _FEWEST


def _length(eqn: Eqn) -> int:
    """The number of steps, or a bound of it."""
    return int(eqn.attrs["length"] if eqn.op.name == "scan" else eqn.attrs["max_steps"])


def _segment_size(eqn: Eqn) -> int:
    """The most steps of one segment."""
    length, checkpoints = _length(eqn), eqn.hints.checkpoints
    return isqrt(length - 1) + 1 if checkpoints is None else -(-length // checkpoints)


def _hints(eqn: Eqn, segments: int, size: int) -> tuple[Hints, Hints]:
    """The hints of the loop over segments, which is not cut again, and of that over their steps.

    If the user gave the number of checkpoints, the latter is not cut either.
    """
    inner = eqn.hints
    if inner.checkpoints is not None:
        inner = replace(inner, checkpoints=size)
    return Hints(construct=inner.construct, checkpoints=max(segments, 1)), inner


def segmented(parent: Trace, eqn: Eqn) -> Region:
    """A region of the operands of a loop with the same results, by loops over segments."""
    return (_segmented_scan if eqn.op.name == "scan" else _segmented_while)(parent, eqn)


def _segmented_scan(parent: Trace, eqn: Eqn) -> Region:
    length, reverse = eqn.attrs["length"], eqn.attrs["reverse"]
    size = _segment_size(eqn)
    whole, rest = divmod(length, size)
    pieces = [(0, whole, size), *([(whole * size, 1, rest)] if rest else [])]
    parts = loop_parts(eqn)

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        emit = Emit(trace)
        carry, xs, captures = split(params, len(parts.init), len(parts.xs))
        stacked = []
        for start, blocks, steps in reversed(pieces) if reverse else pieces:
            cut = [_blocks(emit, x, start, blocks, steps) for x in xs]
            outs = _scan_segments(trace, eqn, blocks, steps, [*carry, *cut, *captures])
            carry = tuple(outs[: len(carry)])
            stacked.append([_merged(emit, y) for y in outs[len(carry) :]])
        ordered = stacked[::-1] if reverse else stacked
        columns = zip(*ordered, strict=True)
        joined = [c[0] if len(c) == 1 else emit.concatenate(*c, axis=0) for c in columns]
        return [*carry, *joined]

    return region_of(parent, [a.type for a in eqn.operands], record)


def _scan_segments(
    trace: Trace, eqn: Eqn, blocks: int, steps: int, operands: Sequence[Any]
) -> Sequence[Tracer]:
    """A scan over segments, whose body is a checkpointed scan over the steps of one."""
    count, moving = eqn.attrs["carry"], eqn.attrs["xs"]
    types = [x.type for x in operands]
    for i in range(count, count + moving):
        types[i] = types[i].with_shape(types[i].shape[1:])

    over_segments, over_steps = _hints(eqn, blocks, steps)

    def segment(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        atoms = [inner.read(x) for x in params]
        attrs = {**eqn.attrs, "length": steps}
        return inner.record(eqn.op, atoms, attrs, eqn.regions, over_steps)

    def body(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        return _checkpointed(inner, params, types, segment)

    attrs = {**loop_counts(eqn, count, moving), "length": blocks}
    atoms = [trace.read(x) for x in operands]
    return trace.record(eqn.op, atoms, attrs, (region_of(trace, types, body),), over_segments)


def _segmented_while(parent: Trace, eqn: Eqn) -> Region:
    """The condition is tested before each segment and before each step, as in the loop itself."""
    condition, step = eqn.regions
    count, bound, size = eqn.attrs["carry"], _length(eqn), _segment_size(eqn)
    types = [a.type for a in eqn.operands]
    counted = [*types[:count], NUMBER, *types[count:]]
    segments = -(-bound // size)
    over_segments, over_steps = _hints(eqn, segments, size)

    def test(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        (again,) = run_region(inner, condition, [*params[:count], *params[count + 1 :]])
        f = Emit(inner)
        return [f.logical_and(again, f.less(params[count], np.int64(size)))]

    def advance(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        after = run_region(inner, step, [*params[:count], *params[count + 1 :]])
        return [*after, Emit(inner).add(params[count], np.int64(1))]

    def segment(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        operands = [*params[:count], np.int64(0), *params[count:]]
        atoms = [inner.read(x) for x in operands]
        attrs = {"carry": count + 1, "max_steps": size}
        regions = region_of(inner, counted, test), region_of(inner, counted, advance)
        return inner.record(eqn.op, atoms, attrs, regions, over_steps)[:count]

    def body(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        return _checkpointed(inner, params, types, segment)

    def record(trace: Trace, params: list[Tracer]) -> Sequence[Any]:
        attrs = {"carry": count, "max_steps": segments}
        atoms = [trace.read(x) for x in params]
        regions = condition, region_of(trace, types, body)
        return trace.record(eqn.op, atoms, attrs, regions, over_segments)

    return region_of(parent, types, record)


def _checkpointed(
    trace: Trace, operands: Sequence[Tracer], types: Sequence[ArrayType], segment: Body
) -> Sequence[Tracer]:
    """Record a segment, of which reverse mode keeps the operands."""
    atoms = [trace.read(x) for x in operands]
    region = region_of(trace, types, segment)
    return trace.record(get("checkpoint"), atoms, {"args": len(atoms)}, (region,))


def _blocks(emit: Emit, x: Any, start: int, blocks: int, steps: int) -> Any:
    """Slices of an array as blocks, one for each segment."""
    shape = x.shape[1:]
    starts, ones = (start, *(0 for _ in shape)), (1,) * x.ndim
    run = emit.slice(x, starts=starts, steps=ones, sizes=(blocks * steps, *shape))
    return emit.reshape(run, shape=(blocks, steps, *shape))


def _merged(emit: Emit, y: Any) -> Any:
    blocks, steps, *shape = y.shape
    return emit.reshape(y, shape=(blocks * steps, *shape))
