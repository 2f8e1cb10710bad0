"""Streams: the one that calls run on is chosen by each thread and each asynchronous task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tracegraph.current_stream import Chosen, chosen_stream, on_stream
from tracegraph.devices import canonical_device
from tracegraph.staging.compiler import compiler, default_device

__all__ = ["Stream", "stream"]


class Stream:
    """A queue of work on a device; work in different streams may run at the same time.

    It is ordered with CUDA's legacy default stream, which other libraries use unless told
    otherwise. On the host, where each call ends before it returns, a stream has no effect.

    Args:
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the device that functions run on
            by default.
        priority: if work in several streams waits for the GPU, lower numbers come first. Without
            it, the lowest priority, 0. On the host it has no effect either.

    Raises:
        ValueError: there is no such device, or it has no such priority.
        TypeError: the priority is not an integer.
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

    def _chosen(self) -> Chosen | None:
        return None if self._stream is None else chosen_stream(self._stream)

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
        TypeError: `s` is something else.
        ValueError: a negative handle, or the per-thread default stream.

    >>> import tracegraph
    >>> with stream(Stream("host")):
    ...     tracegraph.jit(lambda x: x + 1, device="host")(1)
    Array(2, dtype=int64)
    """
    with on_stream(chosen_stream(s)):
        yield
