"""Calls by address: a graph for the default stream, run with memory of another library.

Arguments are numbers and contiguous arrays, results such arrays, and CUDA orders the other
library's work on them with that of the default stream. So nothing is looked at but addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowering.cuda.calls.stream_graph import StreamGraph

AddressedCall = Callable[[list[int], Sequence[tuple[int, Any]]], bool]
"""Takes the addresses of the arguments and of the results, and the positions and values of numbers,
in whose place the addresses are 0; whether the call was made.

It raises ClosedError if the executable is closed.
"""


def addressed_call(graph: StreamGraph) -> AddressedCall | None:
    """The call of a graph by address; None if its launches have more to do than to run.

    It is not made while loops run or memory is held for earlier calls, nor if an argument is not
    aligned as the graph needs it, or a number is not passed by value.
    """
    if not graph.plain:
        return None
    timeline, thread, holding = graph.timeline, graph.thread, graph.holding
    in_flight, held, replicas = timeline.in_flight, timeline.held, graph.replicas
    values, make_room = replicas.values, graph.make_room
    inputs = graph.inputs
    alignments = [each.alignment for each in inputs]

    def launch(addresses: list[int], numbers: Sequence[tuple[int, Any]]) -> bool:
        if in_flight or held or any(map(mod, addresses, alignments)):
            return False
        if numbers and not all(inputs[i].takes_numbers for i, _ in numbers):
            return False
        thread.ready  # noqa: B018 - the first read in a thread does it
        with holding:
            for i, number in numbers:
                inputs[i].write_number(number)
                addresses[i] = inputs[i].address
            replica = replicas.current
            if addresses != replica.bound or values.stale:
                replica = replicas.update(addresses)
            if make_room is not None:
                make_room()
            replica.start()
            graph.launches += 1
        return True

    return launch
