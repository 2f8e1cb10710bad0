"""Determinism: scatters that combine floats in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_required: ContextVar[bool] = ContextVar("tracegraph_deterministic", default=False)


class _Process:
    """Whether a block was ever entered. Until then, calls need not look at the context."""

    __slots__ = ("entered",)

    def __init__(self) -> None:
        self.entered = False


process = _Process()


@contextmanager
def deterministic() -> Iterator[None]:
    """Give the same bits in every run, also where floats are summed at indices that are data.

    On a GPU, updates that combine (``np.add.at(y, i, v)``, ``x.at[i].multiply(v)``, ``bincount``
    with weights) run in parallel. Integers, minima and maxima do not depend on the order, but sums
    and products of floats differ in their rounding from run to run. Functions that are traced
    inside the block make such updates one after the other for each element, as the host always
    does, which takes longer. Nothing else depends on the order of threads.

    A jitted function has programs of its own for calls inside: what was traced outside the block is
    not used there, nor the reverse. Calls inside take some microseconds more.

    >>> import numpy as np
    >>> import tracegraph
    >>> @tracegraph.jit
    ... def totals(bins, weights):
    ...     return np.zeros_like(weights, shape=2).at[bins].add(weights)
    >>> with tracegraph.deterministic():
    ...     print(totals(np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0])))
    [1. 5.]
    """
    process.entered = True
    token = _required.set(True)
    try:
        yield
    finally:
        _required.reset(token)


def is_deterministic() -> bool:
    """Whether the caller is inside a `deterministic` block."""
    return process.entered and _required.get()
