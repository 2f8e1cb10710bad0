"""Launches of exported graphs, in the order of all else that reads or writes their memory.

Their arguments are waited for as those of calls are. Results are at the same address in each
launch: a launch waits for all uses of the results of the one before, and they belong to its stream
from then on, like those of a call on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from lowering.cuda.calls.arguments import Bound
from lowering.cuda.interface import Allocation
from lowering.cuda.memory.owned_buffer import OwnedBuffer
from lowering.cuda.memory.pool import CudaBuffer
from lowering.cuda.streams.exclusive_use import ExclusiveUse
from lowering.cuda.streams.in_flight import later
from lowering.cuda.streams.launch_end import LaunchEnd
from lowering.cuda.streams.stream_state import StreamState
from lowering.cuda.streams.timeline import Timeline
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ExportedOperands:
    """What the launches of an exported graph read and write, and must not run beside.

    `arguments` are those that are read where they are, and `results` are written by each launch.
    Launches with `loops` may run for any time; the word `flag` ends them. `scratch` is the use of
    what belongs to the graph: all its executables share it. `exclusive` are the uses of what other
    graphs also need.
    """

    arguments: Sequence[CudaBuffer | OwnedBuffer | Any]
    results: Sequence[CudaBuffer]
    loops: bool
    flag: Allocation | None
    scratch: ExclusiveUse
    exclusive: Sequence[ExclusiveUse]

    def ordered_on(self, timeline: Timeline) -> bool:
        """Whether the order of the default stream is enough: nothing is to wait for, or to note."""
        if self.loops or timeline.in_flight or self.scratch.timeline is not timeline:
            return False
        for buffer in self.results:
            if buffer.timeline is not timeline or buffer.shared:
                return False
        for argument in self.arguments:
            if type(argument) is not CudaBuffer or argument.timeline is not timeline:
                return False
            if argument.pending is not None:
                return False
        return True

    def require_arguments(self) -> None:
        """Raise StoppedError if what computes an argument was stopped."""
        for argument in self.arguments:
            if isinstance(argument, CudaBuffer):
                argument.check()


def launch_in_order(
    start: Callable[[], None], operands: ExportedOperands, stream: StreamState
) -> None:
    """Launch on a stream by `start`.

    Raises:
        StoppedError: what computes an argument was stopped.
        TimeLimitError: the time of a `time_limit` was up while loops in flight were waited for.
    """
    timeline = stream.timeline
    if stream.is_default:
        with operands.scratch.holding:
            if operands.ordered_on(timeline):
                start()
                return
    bound = Bound(stream)
    for argument in operands.arguments:
        _await(argument, bound)
    timeline.release_held()
    timeline.make_room()  # before others have to wait for the exclusive uses
    uses = [operands.scratch, *operands.exclusive]
    with ExitStack() as held:
        for use in uses:
            held.enter_context(use.hold(timeline))
        for result in operands.results:
            result.rewritten_on(stream.pool)
        # What the launch uses is marked before: an interrupt may come right after it.
        mark = LaunchEnd(stream.driver.record)
        try:
            for buffer in bound.cross_stream:
                buffer.used_at(mark)
            if not stream.is_default:
                timeline.hold(mark, operands)
            pending = timeline.launch(start, None, operands.loops, bound.pending, operands.flag)
        finally:
            mark.made = True
        for result in operands.results:
            result.pending = pending
        if not stream.is_default:  # it may be destroyed before the event is needed
            end = mark.end()
            for use in uses:
                use.leave(end)
            for result in operands.results:
                result.computed_at(end)
        elif bound.cross_stream:
            mark.end()


def _await(argument: Any, bound: Bound) -> None:
    """Let the stream wait for an argument, as `bind` does."""
    timeline = bound.stream.timeline
    if isinstance(argument, CudaBuffer):
        argument.check()
        pending = argument.pending
        if argument.timeline is not timeline:
            pending = argument.awaited_by(timeline)
            bound.cross_stream.append(argument)
        bound.pending = later(bound.pending, pending)
    elif isinstance(argument, OwnedBuffer):
        argument.order(bound.stream.driver)
    else:
        bound.stream.driver.foreign(argument)


def unordered(operands: ExportedOperands) -> set[Timeline]:
    """The timelines of arguments: what launches that are not ordered here have to find done."""
    return {a.timeline for a in operands.arguments if isinstance(a, CudaBuffer)}
