"""The stream that calls run on: chosen by each thread and each asynchronous task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tracegraph.generated.dataclass import dataclass

_LEGACY = 1  # CU_STREAM_LEGACY: what the handle 0 means
_PER_THREAD = 2  # CU_STREAM_PER_THREAD


@dataclass(frozen=True, slots=True)
class Chosen:
    """A stream by its handle, and the object that keeps it alive."""

    handle: int
    owner: Any


_current: ContextVar[Chosen | None] = ContextVar("tracegraph_stream", default=None)

current_stream = _current.get
"""The stream chosen by the blocks around; None for the device's own."""


@contextmanager
def on_stream(chosen: Chosen | None) -> Iterator[None]:
    """Within the context, calls run on this stream; None for the device's own."""
    token = _current.set(chosen)
    try:
        yield
    finally:
        _current.reset(token)


def chosen_stream(s: Any) -> Chosen | None:
    """What `tracegraph.stream` chooses; raises what it does."""
    if (choose := getattr(s, "_chosen", None)) is not None:  # of `tracegraph.Stream`
        own: Chosen | None = choose()
        return own
    if hasattr(s, "__cuda_stream__"):
        return Chosen(_checked(s.__cuda_stream__()[1]), s)
    if isinstance(s, int) and not isinstance(s, bool):
        return Chosen(_checked(s), None)
    for attribute in ("cuda_stream", "ptr"):  # PyTorch and CuPy, before they had the protocol
        handle = getattr(s, attribute, None)
        if isinstance(handle, int):
            return Chosen(_checked(handle), s)
    raise TypeError(
        "stream takes a tracegraph.Stream, a stream of CuPy or PyTorch, any object with "
        f"__cuda_stream__, or the handle of a stream as an int; got {type(s).__qualname__}"
    )


def _checked(handle: int) -> int:
    if handle < 0:
        raise ValueError(f"the handle of a stream is not negative, got {handle}")
    if handle == _PER_THREAD:
        raise ValueError(
            "the per-thread default stream is another one in each thread, so results on it could "
            "not be waited for elsewhere; make a tracegraph.Stream() instead"
        )
    return handle or _LEGACY
