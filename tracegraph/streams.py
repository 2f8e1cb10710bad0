"""Streams: the one that calls run on is chosen by each thread and each asynchronous task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tracegraph.devices import canonical_device
from tracegraph.staging.compiler import compiler, default_device

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


class Stream:
    """A queue of work on a device; work in different streams may run at the same time.

    It is ordered with CUDA's legacy default stream, which other libraries use unless told
    otherwise. On the host, where each call ends before it returns, a stream has no effect.

    Args:
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the device that functions run on
            by default.
        priority: where work waits for the GPU in several streams, lower numbers come first. Without
            it, the lowest priority, 0. On the host it has no effect either.

    Raises:
        ValueError: there is no such device, or it has no such priority.
        TypeError: the priority is no integer.
        RuntimeError: the device cannot be used.

    >>> Stream("host")
    Stream(device='host')
    """

    __slots__ = ("__weakref__", "_stream", "device")

    def __init__(self, device: str | None = None, *, priority: int | None = None) -> None:
        if priority is not None and (isinstance(priority, bool) or not isinstance(priority, int)):
            raise TypeError(
                f"the priority of a stream is an int, such as -1, or None for the lowest one, got "
                f"{priority!r}"
            )
        self.device = default_device() if device is None else canonical_device(device)
        self._stream = compiler().create_stream(self.device, priority)

    @property
    def priority(self) -> int:
        """The priority; lower numbers come first. 0, the lowest, on the host."""
        return 0 if self._stream is None else self._stream.priority

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of this protocol, and the handle, for other libraries.

        Raises:
            TypeError: the stream is one of the host.
        """
        if self._stream is None:
            raise TypeError(f"{self!r} is no CUDA stream; make one with Stream('cuda')")
        protocol: tuple[int, int] = self._stream.__cuda_stream__()
        return protocol

    def synchronize(self) -> None:
        """Wait for all work in the stream; raises what reading a result of that raises."""
        if self._stream is not None:
            self._stream.synchronize()

    def __repr__(self) -> str:
        return f"Stream(device={self.device!r})"


@contextmanager
def stream(s: Any) -> Iterator[None]:
    """Run the calls inside the block on a stream.

    The choice holds for the thread, or the asynchronous task, that makes it, and for what inherits
    its context: tasks, and where ``sys.flags.thread_inherit_context`` is set threads, that are
    started inside. Arguments that were computed on other streams are waited for by the device, not
    by the host.

    Args:
        s: a `Stream`, a stream of CuPy or PyTorch, any object with ``__cuda_stream__``, or the
            handle of a stream. What only a handle names must stay open while arrays that were
            computed on it are in use.

    Raises:
        TypeError: `s` is none of these.
        ValueError: a negative handle, or the per-thread default stream.

    >>> import tracegraph
    >>> with stream(Stream("host")):
    ...     tracegraph.jit(lambda x: x + 1, device="host")(1)
    Array(2, dtype=int64)
    """
    token = _current.set(chosen_stream(s))
    try:
        yield
    finally:
        _current.reset(token)


def chosen_stream(s: Any) -> Chosen | None:
    """What `stream` chooses; raises what it does."""
    if isinstance(s, Stream):
        return None if s._stream is None else Chosen(_checked(s.__cuda_stream__()[1]), s._stream)
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
