"""Quick calls: a function made for one graph, which runs it with arguments as most calls have them.

Those are buffers of the same stream that wait for no loop, and Python numbers. What they are is
tested, results are made and addresses compared in straight lines, with all at hand that it takes;
any other call goes the general way. The text depends on how many arguments and results there are,
and which arguments may be numbers, so that few are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lowering.cuda.arguments import NUMBERS
from lowering.cuda.memory import CudaBuffer
from tracegraph.donated import Donated
from tracegraph.streams import current_stream

if TYPE_CHECKING:
    from lowering.cuda.instance import Instance

Call = Callable[..., list[CudaBuffer]]
"""Takes the arguments, and what is donated if anything; returns the results."""

MOST_ARRAYS = 64
"""Arguments and results up to which a call is written out: the compiler takes 50 µs for each."""


General = Callable[[], Call | None]
"""A weak reference to the call of an executable, which holds the quick one."""


def general_call(general: General) -> Call:
    """The call that goes the general way always."""

    def launch(arguments: Sequence[Any], donated: Donated | None = None) -> list[CudaBuffer]:
        call = general()
        assert call is not None, "whoever calls has the executable"
        return call(arguments, donated)

    return launch


def quick_call(instance: Instance, general: General) -> Call:
    """The call of a graph for the device's own stream; a general one where there is none."""
    numbers = tuple(wanted.takes_numbers for wanted in instance.inputs)
    results = len(instance.outputs)
    if not instance.plain or len(numbers) + results > MOST_ARRAYS:
        return general_call(general)
    return _factory(numbers, results)(instance, general)


@lru_cache(256)
def _factory(numbers: tuple[bool, ...], results: int) -> Callable[[Instance, General], Call]:
    """A function (instance, general) -> the call of a graph.

    `numbers` says of each argument whether it may be one, and `results` how many there are.
    """
    text = _TEXT.format(
        known=_lines(_KNOWN_NUMBER, (i for i, may in enumerate(numbers) if may))
        + _lines(_KNOWN_RESULT, range(results)),
        arguments=_listed("a{i}", len(numbers)),
        unusual="".join(
            (_UNUSUAL_NUMBER if may else _UNUSUAL_ARRAY).format(i=i)
            for i, may in enumerate(numbers)
        ),
        bound="".join(
            (_BOUND_NUMBER if may else _BOUND_ARRAY).format(i=i) for i, may in enumerate(numbers)
        ),
        made=_lines(_MADE, range(results)),
        addresses=_listed("p{i}", len(numbers)) + _listed("q{i}", results),
        stale=" or instance.stale_values" if any(numbers) else "",
        results=_listed("r{i}", results),
    )
    scope: dict[str, Any] = {
        "CudaBuffer": CudaBuffer,
        "NUMBERS": NUMBERS,
        "new": CudaBuffer.__new__,
        "current_stream": current_stream,
    }
    exec(compile(text, "<calls of a graph>", "exec"), scope)
    factory: Callable[[Instance, General], Call] = scope["factory"]
    return factory


def _lines(template: str, numbers: Iterable[int]) -> str:
    return "".join(template.format(i=i) for i in numbers)


def _listed(template: str, count: int) -> str:
    return "".join(f"{template.format(i=i)}, " for i in range(count))


_TEXT = """
def factory(instance, general):
    timeline, thread = instance.timeline, instance.thread
    flights, lock, allocate = timeline.flights, instance.lock, instance.allocate
    update, start = instance.update, instance.start
{known}
    def launch(arguments, donated=None):
        [{arguments}] = arguments
        if (current_stream() is not None or donated is not None or flights{unusual}
        ):
            return general()(arguments, donated)
        thread.ready
        with lock:
{bound}{made}
            addresses = [{addresses}]
            if addresses != instance.bound{stale}:
                update(addresses)
            start()
            instance.launches += 1
        return [{results}]
    return launch
"""

_KNOWN_NUMBER = """\
    write{i}, address{i} = instance.inputs[{i}].write_number, instance.inputs[{i}].address
"""

_KNOWN_RESULT = """\
    type{i}, size{i}, free{i} = instance.outputs[{i}]
    pop{i} = free{i}.pop
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
                if write{i}(a{i}):
                    instance.stale_values = True
"""

_MADE = """\
            try:
                memory = pop{i}()
            except IndexError:
                memory, _ = allocate(size{i})
            r{i} = new(CudaBuffer)
            r{i}._free = free{i}
            r{i}._allocation = memory
            r{i}.pointer = q{i} = memory.pointer
            r{i}.flight = None
            r{i}.timeline = timeline
            r{i}.type = type{i}
"""
