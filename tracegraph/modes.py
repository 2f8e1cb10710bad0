"""Modes of tracing: blocks of a `with` that change what is recorded inside of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

__all__ = ["check_indices", "deterministic"]


class Modes(NamedTuple):
    """What the blocks around a call ask for. Programs of other modes are traced apart."""

    deterministic: bool = False
    checked_indices: bool = False


PLAIN = Modes()

_modes: ContextVar[Modes] = ContextVar("tracegraph_modes", default=PLAIN)


class _Process:
    """Whether a block was ever entered. Until then, calls need not look at the context."""

    __slots__ = ("entered",)

    def __init__(self) -> None:
        self.entered = False


process = _Process()


def current_modes() -> Modes:
    """The modes that the caller is in."""
    return _modes.get() if process.entered else PLAIN


@contextmanager
def _changed(**changes: bool) -> Iterator[None]:
    process.entered = True
    token = _modes.set(_modes.get()._replace(**changes))
    try:
        yield
    finally:
        _modes.reset(token)


@contextmanager
def deterministic() -> Iterator[None]:
    """Give the same bits in every run, also where floats are summed at indices that are data.

    On a GPU, updates that combine (``np.add.at(y, i, v)``, ``x.at[i].multiply(v)``, ``bincount``
    with weights) run in parallel. Integers, minima and maxima do not depend on the order, but sums
    and products of floats differ in their rounding from run to run. Functions that are traced
    inside the block make such updates one after the other for each element, as the host always
    does, and give its bits. Elements are independent: many updates are sorted by element first.
    Nothing else depends on the order of threads.

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
    with _changed(deterministic=True):
        yield


@contextmanager
def check_indices(enabled: bool = True) -> Iterator[None]:
    """Raise where a traced index is out of range, instead of clamping the read or dropping it.

    NumPy raises an IndexError for ``x[i]`` out of range. A graph does not stop in the middle:
    without a check, such reads are clamped to the array, and such writes are dropped. Functions
    that are traced inside the block check each traced index, and raise ``IndexRangeError``, an
    IndexError, with the user's line: on the host when the element is read, on a device when results
    of the program are waited for. Each check costs a reduction over the index. The promise of
    ``x.at[i].add(v, unique=True)``, that indices do not repeat, is also checked: updates of each
    element are counted, and a second one raises ``RepeatedIndexError``.

    Windows of `dynamic_slice` move as before. Functions that clamp or drop by definition still do,
    such as ``np.take(x, i, mode="clip")`` and ``np.bincount``.

    A jitted function has programs of its own for calls inside, as in `deterministic`.

    Args:
        enabled: False for a block without checks inside of one with them. The condition of a loop
            needs one for its reads at traced indices, since how often it runs is not defined.

    >>> import numpy as np
    >>> import tracegraph
    >>> element = tracegraph.jit(lambda x, i: x[i])
    >>> element(np.arange(3), 7)
    Array(2, dtype=int64)
    >>> with tracegraph.check_indices():
    ...     try:
    ...         element(np.arange(3), 7)
    ...     except IndexError as error:
    ...         print(type(error).__name__)
    IndexRangeError
    """
    with _changed(checked_indices=enabled):
        yield


def is_deterministic() -> bool:
    """Whether the caller is inside a `deterministic` block."""
    return process.entered and _modes.get().deterministic


def are_indices_checked() -> bool:
    """Whether the caller is inside a `check_indices` block."""
    return process.entered and _modes.get().checked_indices
