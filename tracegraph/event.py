"""Events of other code in programs: nodes that record them, and nodes that wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tracegraph import errors
from tracegraph.control.regions import current_for
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.effects import require_allowed
from tracegraph.ir.events import EventUse
from tracegraph.ir.op import get
from tracegraph.ir.types import type_of

_HANDLES = ("handle", "cuda_event", "ptr")
"""Where events of cuda.core, PyTorch and CuPy have their handle."""


@entry_point
def record(event: Any, /, *values: Any) -> None:
    """Record a CUDA event behind what a running program has done when it reaches this line.

    It becomes an event record node of the graph: what computes `values` is before it, and so are
    earlier prints, callbacks and embedded graphs; all that comes after it in the graph waits for
    it. Without a GPU nothing happens, and neither does outside of jitted functions. Under `vmap` it
    is recorded once.

    Args:
        event: an event of cuda.core, PyTorch or CuPy, or the handle of a ``CUevent``. It lives as
            long as the graph; what only a handle names must stay valid until then.
        *values: arrays that are computed before.

    Raises:
        EventError: `event` is not an event, or has no handle yet, like one of PyTorch before its
            first record; or a value is not an array.
        EventInBodyError: when the program is compiled: it is inside a branch or a loop.
        EffectInConditionError: it is in the condition of a loop.

    >>> import numpy as np
    >>> import tracegraph
    >>> @tracegraph.jit(device="host")
    ... def f(x):
    ...     y = x * 2
    ...     tracegraph.event.record(0x5000, y)  # no event is used on the host
    ...     return y + 1
    >>> f(np.arange(3.0))
    Array([1., 3., 5.], dtype=float64)
    """
    _use("record", event, values)


@entry_point
def wait(event: Any, /) -> None:
    """Let what a running program does behind this line wait for a CUDA event.

    It becomes an event wait node of the graph: all that comes after it waits for the last record of
    the event before the launch. Without a GPU nothing happens, and neither does outside of jitted
    functions. Under `vmap` it is waited for once.

    Arguments of the program that are used behind this line are read behind it, also if they were
    read before. What is computed before it is computed from what their memory had then.

    Args:
        event: as in `record`.

    Raises:
        EventError: `event` is not an event, or has no handle yet.
        EventInBodyError: when the program is compiled: it is inside a branch or a loop.
        EffectInConditionError: it is in the condition of a loop.

    >>> import numpy as np
    >>> import tracegraph
    >>> @tracegraph.jit(device="host")
    ... def f(x):
    ...     tracegraph.event.wait(0x5000)  # no event is waited for on the host
    ...     return x + 1
    >>> f(np.arange(3.0))
    Array([1., 2., 3.], dtype=float64)
    """
    _use("wait", event, ())


def _use(action: Literal["record", "wait"], event: Any, values: Sequence[Any]) -> None:
    function = f"event.{action}"
    require_allowed(function)
    use = EventUse(action, _handle(event, function), event)
    for value in values:
        try:
            type_of(value)
        except (TypeError, OverflowError) as error:
            raise errors.EventError(function, f"a value: {error}") from None
    trace = current_for(values)
    if trace is not None:
        trace.perform(get("use_event"), values, {"event": use})


def _handle(event: Any, function: str) -> int:
    found: Any = event
    for name in _HANDLES:
        if hasattr(event, name):
            found = getattr(event, name)
            break
    try:
        handle = int(found)
    except (TypeError, ValueError):
        handle = -1
    if handle < 0 or isinstance(found, (bool, float, str)):
        raise errors.EventError(
            function,
            "the event must be one of cuda.core, PyTorch or CuPy, or the handle of a CUevent as an "
            f"int, not {errors.value_text(event)}",
        )
    if handle == 0:
        raise errors.EventError(
            function, "the event has no handle yet: record it once, as event.record(), before"
        )
    return handle
