"""Quick calls: a function made for one graph, which runs it with arguments as most calls have them.

Those are buffers of the same stream that wait for no loop, and Python numbers, while nothing is
held for an earlier call. What they are is tested, results are made and addresses compared in
straight lines, with all at hand that it takes; any other call goes the general way. The text
depends on how many arguments and results there are, and which arguments may be numbers, so that few
are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from textwrap import indent
from typing import TYPE_CHECKING, Any

from lowering.cuda.calls.arguments import NUMBERS
from lowering.cuda.memory.cross_stream import Loan
from lowering.cuda.memory.pool import CudaBuffer
from tracegraph.errors import ClosedError
from tracegraph.generated import define, each
from tracegraph.staging.donated import Donated
from tracegraph.streams import current_stream

if TYPE_CHECKING:
    from lowering.cuda.calls.stream_graph import Instance

Call = Callable[..., list[CudaBuffer]]
"""Takes the arguments, and what is donated if anything; returns the results."""

Elsewhere = Callable[[], Call | None]
"""A weak reference to the call of an executable on any stream: it holds the quick one."""

MOST_ARRAYS = 64
"""Arguments and results up to which a call is written out: the compiler takes 50 µs for each."""


def home_call(instance: Instance, elsewhere: Elsewhere) -> Call:
    """The call of an executable, whose graph for the device's own stream is `instance`."""
    factory = _factory_of(instance, home=True)
    return _general(instance, elsewhere) if factory is None else factory(instance, elsewhere)


def away_call(instance: Instance) -> Call:
    """The call of a graph for another stream, which is the current one."""
    factory = _factory_of(instance, home=False)
    return instance.launch if factory is None else factory(instance, None)


def closed_call(name: str) -> Call:
    """The call of a closed executable."""

    def launch(arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        raise ClosedError(name)

    return launch


def _general(instance: Instance, elsewhere: Elsewhere) -> Call:
    general = instance.launch

    def launch(arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        if current_stream() is not None:
            call = elsewhere()
            assert call is not None, "whoever calls has the executable"
            return call(arguments, donated)
        return general(arguments, donated)

    return launch


def _factory_of(instance: Instance, home: bool) -> Callable[..., Call] | None:
    numbers = tuple(wanted.takes_numbers for wanted in instance.inputs)
    results = len(instance.outputs)
    if not instance.plain or len(numbers) + results > MOST_ARRAYS:
        return None
    return _factory(numbers, results, home, instance.make_room is not None)


@lru_cache(256)
def _factory(
    numbers: tuple[bool, ...], results: int, home: bool, needs_room: bool
) -> Callable[..., Call]:
    """A function (instance, elsewhere) -> the call of a graph.

    `numbers` says of each argument whether it may be one, and `results` how many there are.
    """
    known_numbers = (i for i, may_be in enumerate(numbers) if may_be)
    text = _TEXT.format(
        known=each(_KNOWN_NUMBER, known_numbers) + each(_KNOWN_RESULT, range(results)),
        choice=_CHOICE if home else "",
        held=" or held" if home else "",
        arguments=each("a{i}, ", range(len(numbers))),
        unusual=_either(_UNUSUAL_NUMBER, _UNUSUAL_ARRAY, numbers),
        bound=_either(_BOUND_NUMBER, _BOUND_ARRAY, numbers),
        made=each(_MADE, range(results)),
        addresses=each("p{i}, ", range(len(numbers))) + each("q{i}, ", range(results)),
        stale=" or values.stale" if any(numbers) else "",
        room=_ROOM if needs_room else "",
        start=_START if home else _START_AWAY + each(_MARKED, range(results)),
        results=each("r{i}, ", range(results)),
    )
    scope: dict[str, Any] = {
        "CudaBuffer": CudaBuffer,
        "Loan": Loan,
        "NUMBERS": NUMBERS,
        "current_stream": current_stream,
    }
    return define(text, "factory", "calls of a graph", scope)


def _either(one: str, other: str, choices: Iterable[bool]) -> str:
    return "".join((one if c else other).format(i=i) for i, c in enumerate(choices))


_TEXT = """
def factory(instance, elsewhere):
    timeline, thread, general = instance.timeline, instance.thread, instance.launch
    flights, hold, record = timeline.flights, timeline.hold, timeline.driver.record
    holding, allocate, definition = instance.holding, instance.allocate, instance.definition
    replicas, held = instance.replicas, timeline.held
    values, make_room = replicas.values, instance.make_room
{known}
    def launch(arguments, donated=None):
{choice}
        [{arguments}] = arguments
        if (donated is not None or flights{held}{unusual}
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
            instance.launches += 1
        return [{results}]
    return launch
"""

_KNOWN_NUMBER = """\
    input{i} = instance.inputs[{i}]
    write{i}, address{i} = input{i}.write_number, input{i}.address
"""

_KNOWN_RESULT = """\
    type{i}, size{i}, free{i} = instance.outputs[{i}]
    pop{i} = free{i}.pop
"""

_CHOICE = """\
        if current_stream() is not None:
            return elsewhere()(arguments, donated)
"""

_UNUSUAL_ARRAY = """
            or type(a{i}) is not CudaBuffer
            or a{i}.timeline is not timeline or a{i}.flight is not None"""

_UNUSUAL_NUMBER = """
            or type(a{i}) not in NUMBERS and (type(a{i}) is not CudaBuffer
            or a{i}.timeline is not timeline or a{i}.flight is not None)"""

_BOUND_ARRAY = """\
            p{i} = a{i}.pointer
"""

_BOUND_NUMBER = """\
            if type(a{i}) is CudaBuffer:
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

_START_AWAY = """\
            instance.end = None
            replica.start()
            instance.end = end = record()
            hold(end, definition)
"""

_MARKED = """\
            r{i}._free = Loan(free{i}, end)
"""
