"""Two-level checkpointing of long scans: the root of the memory for computing each step twice.

    scan of N steps   ->   scan of about √N segments, each a checkpointed scan of about √N steps

Of each segment the carry is kept. Backwards, a segment runs again and stacks its steps. Griewank
(1992) has more levels, for less memory still; two run without a decision in any step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

from tracegraph.ir.control_forms import loop_counts, loop_parts, split
from tracegraph.ir.op import get
from tracegraph.ir.program import Eqn, Region, Value
from tracegraph.tracing.trace import Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.bodies import region_of
from tracegraph.transforms.emit import Emit

BUDGET = 256 * 2**20
"""Bytes that a scan may stack for its derivative."""

_FEWEST = 16
"""Steps of a scan that is worth cutting into segments."""


def needs_segments(eqn: Eqn, stacked: Sequence[Value]) -> bool:
    """Whether the values that a scan would stack in each step exceed the budget."""
    length = eqn.attrs["length"]
    size = length * sum(value.type.nbytes for value in stacked)
    cut = [inner.op.name for inner in eqn.regions[0].eqns] == ["checkpoint"]
    return size > BUDGET and length >= _FEWEST and not cut


def segmented(parent: Trace, eqn: Eqn) -> Region:
    """A region of the operands of a scan with the same results, by scans over segments."""
    length, reverse = eqn.attrs["length"], eqn.attrs["reverse"]
    size = isqrt(length - 1) + 1
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

    def segment(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        atoms = [inner.read(x) for x in params]
        attrs = {**eqn.attrs, "length": steps}
        return inner.record(eqn.op, atoms, attrs, eqn.regions, eqn.hints)

    def body(inner: Trace, params: list[Tracer]) -> Sequence[Any]:
        atoms = [inner.read(x) for x in params]
        region = region_of(inner, types, segment)
        return inner.record(get("checkpoint"), atoms, {"args": len(atoms)}, (region,))

    attrs = {**loop_counts(eqn, count, moving), "length": blocks}
    atoms = [trace.read(x) for x in operands]
    return trace.record(eqn.op, atoms, attrs, (region_of(trace, types, body),))


def _blocks(emit: Emit, x: Any, start: int, blocks: int, steps: int) -> Any:
    """Slices of an array as blocks, one for each segment."""
    shape = x.shape[1:]
    starts, ones = (start, *(0 for _ in shape)), (1,) * x.ndim
    run = emit.slice(x, starts=starts, steps=ones, sizes=(blocks * steps, *shape))
    return emit.reshape(run, shape=(blocks, steps, *shape))


def _merged(emit: Emit, y: Any) -> Any:
    blocks, steps, *shape = y.shape
    return emit.reshape(y, shape=(blocks * steps, *shape))
