"""Batching of kernels that users wrote: by the kernel's own rule, or as a loop of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracegraph import errors
from tracegraph.control.scans import map as map_slices
from tracegraph.dtypes import type_text
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.program import Eqn
from tracegraph.ir.types import type_of
from tracegraph.tracing.trace import Active, current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.batching.lanes import Batch, BatchRegion, Lanes


def batch_custom_kernel(
    batch_region: BatchRegion, lanes: Lanes, eqn: Eqn, batches: Sequence[Batch]
) -> list[Batch]:
    """The kernel's own rule, or a loop of calls.

    Raises:
        CustomKernelError: it says nothing of batching, or its rule returned something else.
    """
    call: KernelCall = eqn.attrs["call"]
    trace, rule = lanes.trace, call.kernel.batching
    if not any(x.is_batched for x in batches):
        results = trace.record(eqn.op, [x.atom for x in batches], eqn.attrs)
        return [Batch(x.atom, False) for x in results]
    if rule is None:
        where = "" if eqn.source is None else f"called at {eqn.source}, in {eqn.source.function}"
        raise call.kernel.error(
            "vmap does not know how to apply it to many lanes at once; declare it with "
            'batching="sequential", which is a loop of calls, or with a function of your own, '
            "batching(lanes, batched, *arguments)",
            where,
        )
    with Active(trace):
        operands = [Tracer(trace, x.atom) for x in batches]
        if rule == "sequential":
            outputs = _one_by_one(eqn, batches, operands)
        else:
            flags = tuple([x.is_batched for x in batches])
            returned = rule(lanes.count, flags, *call.arguments(operands))
            outputs = _checked(lanes, eqn, returned)
        return [Batch(trace.read(x), True) for x in outputs]


def _one_by_one(eqn: Eqn, given: Sequence[Batch], operands: Sequence[Tracer]) -> Sequence[Any]:
    """A loop over the lanes."""
    batched = tuple([x for x, lane in zip(operands, given, strict=True) if lane.is_batched])

    def one(slices: Sequence[Any]) -> tuple[Any, ...]:
        own = iter(slices)
        pairs = zip(operands, given, strict=True)
        args = [next(own) if lane.is_batched else x for x, lane in pairs]
        inner = current_trace()
        assert inner is not None, "a slice is traced"
        return inner.record(eqn.op, [inner.read(x) for x in args], eqn.attrs)

    found: tuple[Any, ...] = map_slices(one, batched)
    return found


def _checked(lanes: Lanes, eqn: Eqn, returned: Any) -> Sequence[Any]:
    """What a rule returned, which must be the outputs of all lanes."""
    kernel = eqn.attrs["call"].kernel
    found = returned if isinstance(returned, (tuple, list)) else (returned,)
    wanted = [out.type.with_shape((lanes.count, *out.type.shape)) for out in eqn.outputs]
    got = [type_of(x) for x in found]
    if [(t.dtype, t.shape) for t in got] != [(t.dtype, t.shape) for t in wanted]:
        raise kernel.error(
            f"its batching rule {errors.function_text(kernel.batching)} must return "
            f"{', '.join(map(str, wanted))}: outputs with the lanes along axis 0; it returned "
            + ", ".join([type_text(t.dtype, t.shape) for t in got])
        )
    return found
