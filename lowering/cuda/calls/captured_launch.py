"""Captured launches: a call on a stream that other code captures becomes a child of its graph.

Launches of that graph read the arguments where they are, and write to the same results. All that
the child points to belongs to it, as to an exported graph. Nothing is done on the captured stream
but to add the child, which is one call of the driver: what fails before leaves the capture as it
was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.cuda.calls.arguments import (
    NUMBERS,
    Bound,
    Input,
    as_foreign,
    bind,
    check_device,
    check_type,
    is_row_major,
)
from lowering.cuda.calls.child_graphs import FAILED_CAPTURE, child_obstacle
from lowering.cuda.calls.export import (
    OwnedMemory,
    lowered_flag,
    owning_graph,
    reports,
    wanted_inputs,
)
from lowering.cuda.compilation.compiled_plan import CompiledPlan
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.streams.stream_state import StreamState
from tracegraph.arrays.borrowed_memory import BorrowedMemory
from tracegraph.errors import CapturingStreamError


def add_to_capture(
    compiled: CompiledPlan, stream: StreamState, handle: int, arguments: Sequence[Any]
) -> list[CudaBuffer]:
    """Add a call to the capture of the stream with this handle; the results.

    Memory comes from `stream`, the default stream, which is waited for: launches of the captured
    graph are not ordered behind it. Numbers keep the values that they have now.

    Raises:
        CapturingStreamError: a child graph cannot do what the call does, or an argument is in host
            memory or not contiguous.
        OutOfMemoryError, TypeError, ValueError, StoppedError: as calls do.
    """
    plan = compiled.plan
    obstacle = reports(compiled) or child_obstacle(compiled)
    if plan.aliases:
        obstacle = obstacle or (
            "it writes over donated arguments, so that each launch would start from what the one "
            "before has left; jit it without donation"
        )
    if not stream.driver.takes_nodes(handle):
        obstacle = FAILED_CAPTURE
    if obstacle is not None:
        raise CapturingStreamError(plan.name, obstacle)
    bound, operands = Bound(stream), {}
    inputs = wanted_inputs(compiled)
    for buffer, argument, wanted in zip(plan.inputs, arguments, inputs, strict=True):
        pointer = _in_place(argument, wanted, bound)
        operands[buffer] = OwnedMemory(pointer, buffer.type.nbytes, (argument, bound))
    results = [stream.pool.buffer(buffer.type.strong()) for buffer in compiled.fresh]
    for buffer, result in zip(compiled.fresh, results, strict=True):
        operands[buffer] = OwnedMemory(result.pointer, buffer.type.nbytes, result)
    definition = owning_graph(compiled, stream, operands, lowered_flag(compiled, stream))
    stream.timeline.settle()
    for argument in arguments:
        if isinstance(argument, CudaBuffer):
            argument.check()
    definition.add_to_capture(handle)
    return results


def _in_place(argument: Any, wanted: Input, bound: Bound) -> int:
    """The address at which launches read an argument, each time anew.

    A number cannot change, so that a copy serves as well.
    """
    if type(argument) in NUMBERS or isinstance(argument, np.generic | CudaBuffer):
        return bind(argument, wanted, bound)
    array = None
    if type(argument) is BorrowedMemory:
        argument, array = argument.owner, as_foreign(argument)
    elif not isinstance(argument, np.ndarray):
        array = bound.stream.driver.foreign(argument, ordered=False)
    if array is None:
        raise CapturingStreamError(
            wanted.function,
            f"an argument, {wanted.type.strong()}, is in host memory, which launches of the graph "
            'would not read again; put it on the device before, tracegraph.asarray(x, device="cuda"'
            "), or close over it",
        )
    check_type(array.dtype, array.shape, wanted.type)
    check_device(f"cuda:{array.device}", wanted.device)
    if not is_row_major(array.shape, array.strides) or array.pointer % wanted.type.dtype.itemsize:
        raise CapturingStreamError(
            wanted.function,
            f"an argument, {wanted.type.strong()}, is not contiguous, so that it would be copied "
            "now, and not at each launch; pass a contiguous array",
        )
    if array.pointer % wanted.alignment:
        raise CapturingStreamError(
            wanted.function,
            f"an argument, {wanted.type.strong()}, begins at no multiple of {wanted.alignment} "
            "bytes, as a library call that reads it requires, so that it would be copied now, and "
            "not at each launch; pass an array with memory of its own",
        )
    bound.foreign += [array.owner, bound.stream.driver.retained(argument)]
    return array.pointer
