"""Fast calls: a function generated for one graph, which runs it with the usual arguments.

Usual are buffers of the same stream that wait for no loop, contiguous memory borrowed from
another library on a stream in order with this one, and Python numbers, while nothing is held for
an earlier call. The function tests them, makes results and compares addresses in straight
lines; any other call goes the general way. Its text depends only on the numbers of arguments and
results, and on which arguments may be numbers: few are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from textwrap import indent
from typing import TYPE_CHECKING, Any

from lowering.cuda.calls.arguments import NUMBERS
from lowering.cuda.memory.cross_stream import CrossStreamUse
from lowering.cuda.memory.pool import CudaBuffer
from tracegraph.arrays.borrowed_memory import LEGACY_STREAM, BorrowedMemory
from tracegraph.current_stream import current_stream
from tracegraph.errors import ClosedError
from tracegraph.generated.functions import define, each
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.calls.donated import Donated

if TYPE_CHECKING:
    from lowering.cuda.calls.stream_graph import StreamGraph

StreamCall = Callable[..., list[CudaBuffer]]
"""Takes the arguments, and what is donated if anything; returns the results."""

OnOtherStream = Callable[[], StreamCall | None]
"""A weak reference to the call of an executable on any stream. It is weak because the executable
holds the fast call."""

MOST_ARRAYS = 64
"""Arguments and results up to which a call is written out: the compiler takes 50 µs for each."""


def default_stream_call(graph: StreamGraph, on_other_stream: OnOtherStream) -> StreamCall:
    """The call of an executable on the default stream, whose graph there is `graph`."""
    factory = _factory_of(graph, default=True)
    return _general(graph, on_other_stream) if factory is None else factory(graph, on_other_stream)


def first_call(
    general: OnOtherStream, write: Callable[[], Callable[[], StreamCall] | None]
) -> StreamCall:
    """The call of an executable until `write` puts another in its place: by the second one.

    Compiling its text takes as long as making the graph of a small program, and many run once. Both
    are weak references to methods of the executable.
    """
    unused = [general]

    def launch(arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        try:
            call = unused.pop()()
        except IndexError:
            make = write()
            call = None if make is None else make()
        assert call is not None, "the caller has the executable"
        return call(arguments, donated)

    return launch


def other_stream_call(graph: StreamGraph) -> StreamCall:
    """The call of a graph for another stream, which is the current one."""
    factory = _factory_of(graph, default=False)
    return graph.launch if factory is None else factory(graph, None)


def closed_call(name: str) -> StreamCall:
    """The call of a closed executable."""

    def launch(arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        raise ClosedError(name)

    return launch


def _general(graph: StreamGraph, on_other_stream: OnOtherStream) -> StreamCall:
    general = graph.launch

    def launch(arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        if current_stream() is not None:
            call = on_other_stream()
            assert call is not None, "the caller has the executable"
            return call(arguments, donated)
        return general(arguments, donated)

    return launch


def _factory_of(graph: StreamGraph, default: bool) -> Callable[..., StreamCall] | None:
    numbers = tuple(wanted.takes_numbers for wanted in graph.inputs)
    results = len(graph.outputs)
    if not graph.plain or len(numbers) + results > MOST_ARRAYS:
        return None
    return _factory(numbers, results, default, graph.make_room is not None)


@lru_cache(256)
def _factory(
    numbers: tuple[bool, ...], results: int, default: bool, needs_room: bool
) -> Callable[..., StreamCall]:
    """A function (graph, on_other_stream) -> the call of that graph.

    `numbers` says of each argument whether it may be one, and `results` how many there are.
    """
    known_numbers = (i for i, may_be in enumerate(numbers) if may_be)
    known = each(_KNOWN_INPUT, range(len(numbers))) + each(_KNOWN_NUMBER, known_numbers)
    text = _TEXT.format(
        known=known + each(_KNOWN_RESULT, range(results)),
        choice=_CHOICE if default else "",
        held=" or held" if default else "",
        arguments=each("a{i}, ", range(len(numbers))),
        unusual=_either(_UNUSUAL_NUMBER, _UNUSUAL_ARRAY, numbers),
        bound=_either(_BOUND_NUMBER, _BOUND_ARRAY, numbers),
        made=each(_MADE, range(results)),
        addresses=each("p{i}, ", range(len(numbers))) + each("q{i}, ", range(results)),
        stale=" or values.stale" if any(numbers) else "",
        room=_ROOM if needs_room else "",
        start=_START if default else _START_OTHER + each(_MARKED, range(results)),
        results=each("r{i}, ", range(results)),
    )
    scope: dict[str, Any] = {
        "CudaBuffer": CudaBuffer,
        "CrossStreamUse": CrossStreamUse,
        "BorrowedMemory": BorrowedMemory,
        "streams_of": _streams_of,
        "NUMBERS": NUMBERS,
        "clock": clock,
        "current_stream": current_stream,
    }
    return define(text, "factory", "calls of a graph", scope)


def _streams_of(graph: StreamGraph) -> frozenset[int]:
    """The streams of other libraries whose work needs no event to be in order with that of a
    graph.
    """
    driver = graph.timeline.driver
    return frozenset({driver.stream, LEGACY_STREAM if driver.follows_legacy else driver.stream})


def _either(one: str, other: str, choices: Iterable[bool]) -> str:
    return "".join((one if c else other).format(i=i) for i, c in enumerate(choices))


_TEXT = """
def factory(graph, on_other_stream):
    timeline, thread, general = graph.timeline, graph.thread, graph.launch
    in_flight, hold, record = timeline.in_flight, timeline.hold, timeline.driver.record
    holding, allocate, definition = graph.holding, graph.allocate, graph.definition
    replicas, held = graph.replicas, timeline.held
    values, make_room = replicas.values, graph.make_room
    streams, device = streams_of(graph), graph.device
{known}
    def launch(arguments, donated=None):
{choice}
        [{arguments}] = arguments
        if (donated is not None or in_flight{held}{unusual}
        ):
            return general(arguments, donated)
        thread.ready
        with holding:
{bound}{made}
            addresses = [{addresses}]
            replica = replicas.current
            if addresses != replica.bound{stale}:
                replica = replicas.update(addresses)
{room}{start}
            graph.launches += 1
        return [{results}]
    return launch
"""

_KNOWN_INPUT = """\
    input{i} = graph.inputs[{i}]
    alignment{i} = input{i}.alignment
"""

_KNOWN_NUMBER = """\
    write{i}, address{i} = input{i}.write_number, input{i}.address
"""

_KNOWN_RESULT = """\
    type{i}, size{i}, free{i} = graph.outputs[{i}]
    pop{i} = free{i}.pop
"""

_CHOICE = """\
        if current_stream() is not None:
            return on_other_stream()(arguments, donated)
"""

_UNUSUAL_ARRAY = """
            or (type(a{i}) is not CudaBuffer
            or a{i}.timeline is not timeline or a{i}.pending is not None)
            and (type(a{i}) is not BorrowedMemory or a{i}.stream not in streams
            or a{i}.strides is not None or a{i}.pointer % alignment{i} or a{i}.device != device)"""

_UNUSUAL_NUMBER = f"""
            or type(a{{i}}) not in NUMBERS and ({_UNUSUAL_ARRAY.strip().removeprefix("or ")})"""

_BOUND_ARRAY = """\
            p{i} = a{i}.pointer
"""

_BOUND_NUMBER = """\
            if type(a{i}) is CudaBuffer or type(a{i}) is BorrowedMemory:
                p{i} = a{i}.pointer
            else:
                p{i} = address{i}
                if a{i} is not input{i}.last:
                    write{i}(a{i})
"""

_MADE = """\
            try:
                memory = pop{i}()
            except IndexError:
                memory, _ = allocate(size{i})
            q{i} = memory.pointer
"""

_MADE += indent(
    "".join(
        f"{line}\n"
        for line in CudaBuffer.made_text("r{i}", "memory", "q{i}", "free{i}", "type{i}", "timeline")
    ),
    12 * " ",
)

_ROOM = """\
            make_room()
"""

_START = """\
            replica.start()
"""

_START_OTHER = """\
            graph.end = None
            graph.used = clock()
            replica.start()
            graph.end = end = record()
            hold(end, definition)
"""

_MARKED = """\
            r{i}._free = CrossStreamUse(free{i}, end)
"""
