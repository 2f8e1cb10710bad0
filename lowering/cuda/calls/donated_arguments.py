"""Donation: arguments that outputs are written over, or copies of those that must be kept.

Memory is overwritten in place if the caller is its only owner, and it belongs to the stream of the
launch and is in use on no other. Anything else is copied once, in stream order, and the copy is
overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.cuda.calls.arguments import Bound, Input, bind, host_array
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.streams.stream_state import StreamState
from tracegraph.staging.calls.donated import Donated


def writable(
    arguments: Sequence[Any],
    aliases: Sequence[tuple[int, int]],
    inputs: Sequence[Input],
    stream: StreamState,
    donated: Donated | None,
) -> tuple[Sequence[Any], Bound | None, Donated | None]:
    """The arguments, with copies where needed, and what had to be bound for them.

    `aliases` pairs outputs with the inputs that they are written over. `donated` comes back if some
    of its memory is taken.

    Raises:
        TypeError, ValueError, OutOfMemoryError, StoppedError: as when arguments are bound.
    """
    timeline = stream.timeline
    kept = []
    for _, number in aliases:
        argument = arguments[number]
        owned = donated is not None and number in donated.owned
        if not (owned and type(argument) is CudaBuffer and argument.renew(timeline)):
            kept.append(number)
    if not kept:
        return arguments, None, donated
    found, bound = list(arguments), Bound(stream)
    for number in kept:
        found[number] = _copy(arguments[number], inputs[number], bound)
    return found, bound, donated if len(kept) < len(aliases) else None


def _copy(argument: Any, wanted: Input, bound: Bound) -> CudaBuffer:
    type_, stream = wanted.type, bound.stream
    if isinstance(argument, np.ndarray | np.generic | bool | int | float | complex):
        array = host_array(argument, type_)
        target = stream.pool.buffer(type_)
        if array.nbytes:
            stream.timeline.write(target.pointer, array)
    else:
        source = bind(argument, wanted, bound)
        target = stream.pool.buffer(type_)
        if type_.nbytes:
            stream.driver.copy(target.pointer, source, type_.nbytes)
        if bound.foreign:  # it is read by the copy alone
            stream.timeline.hold(stream.driver.record(), *bound.foreign)
            bound.foreign.clear()
    bound.copies += ((wanted, type_.nbytes),)
    return target
