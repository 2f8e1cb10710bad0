"""NVTX ranges: calls and builds of jitted functions, as Nsight Systems shows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tracegraph.modes import process

DOMAIN = "tracegraph"
"""The domain of the ranges, which profilers can filter by."""

_NOTHING: AbstractContextManager[Any] = nullcontext()


@contextmanager
def ranges() -> Iterator[None]:
    """Mark calls of jitted functions, and what builds them, for Nsight Systems.

    Inside of the block each call is an NVTX range with the function, its file and line; what
    traces, plans and compiles it are ranges inside of that. The kernels of a graph have the names
    of their function and operations: ``nsys profile --cuda-graph-trace=node`` shows each of them.
    Needs the package nvtx. Without a profiler, a range takes less than a microsecond.

    Raises:
        ImportError: nvtx is not installed.

    >>> import numpy as np
    >>> import tracegraph
    >>> double = tracegraph.jit(lambda x: 2 * x)
    >>> with tracegraph.debug.ranges():  # doctest: +SKIP
    ...     double(np.ones(3))
    """
    try:
        import nvtx
    except ImportError:
        raise ImportError(
            "debug.ranges marks calls with the package nvtx, which is not installed: pip install "
            "nvtx"
        ) from None
    before = process.annotate
    process.entered = True
    process.annotate = nvtx.annotate
    try:
        yield
    finally:
        process.annotate = before


def ranged(what: str) -> AbstractContextManager[Any]:
    """The range of a step, if any are asked for."""
    annotate = process.annotate
    if annotate is None:
        return _NOTHING
    found: AbstractContextManager[Any] = annotate(what, domain=DOMAIN)
    return found
