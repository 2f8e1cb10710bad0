"""Modes of tracing: blocks of a `with` that change what is recorded inside of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, get_args

__all__ = ["check_indices", "deterministic", "matmul_precision"]

Precision = Literal["float32", "tf32", "bf16x3"]
"""The least that the products of float32 matrices are computed in."""


class Modes(NamedTuple):
    """What the blocks around a call ask for. Programs of other modes are traced apart."""

    deterministic: bool = False
    checked_indices: bool = False
    matmul_precision: Precision = "float32"


PLAIN = Modes()

_modes: ContextVar[Modes] = ContextVar("tracegraph_modes", default=PLAIN)


class _Process:
    """Whether a block was ever entered. Until then, calls need not look at the context.

    `annotate` makes the ranges that calls are marked by for a profiler, if that is asked for, and
    `checks` counts the blocks now in which results are checked.
    """

    __slots__ = ("annotate", "checks", "entered")

    def __init__(self) -> None:
        self.entered = False
        self.annotate: Callable[..., Any] | None = None
        self.checks = 0

    @property
    def is_plain(self) -> bool:
        """Whether nobody wants to know of calls."""
        return self.annotate is None and not self.checks


process = _Process()


def current_modes() -> Modes:
    """The modes that the caller is in."""
    return _modes.get() if process.entered else PLAIN


@contextmanager
def _changed(**changes: Any) -> Iterator[None]:
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

    Raises:
        TypeError: `enabled` is neither True nor False.

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
    given: Any = enabled
    if not isinstance(given, bool):
        raise TypeError(f"check_indices takes True or False, got {enabled!r}")
    with _changed(checked_indices=enabled):
        yield


@contextmanager
def matmul_precision(precision: Precision) -> Iterator[None]:
    """Compute the products of float32 matrices on a GPU in this precision.

    - ``"float32"``: products are those of NumPy, with a relative error of 6e-8. The default.
    - ``"bf16x3"``: each factor is the sum of two of bfloat16, and a product that of three products
      of these. The relative error is about 1e-5. Infinite elements give NaN.
    - ``"tf32"``: factors are rounded to 11 bits. The relative error is about 5e-4.

    All are summed in float32. Tensor cores compute the lower precisions, several times as fast for
    large matrices. A precision is the least that is promised: small products, and those on the
    host, are computed in float32. It holds for what is traced inside the block: ``x @ y``,
    `einsum`, `dot` and others that are made of products, with their derivatives and batches.
    complex64 has "float32" and "tf32", and other dtypes have one precision. Factorizations and
    solutions of systems are not affected.

    JAX's default on a GPU is "tf32". A jitted function has programs of its own for calls inside, as
    in `deterministic`.

    Args:
        precision: one of these.

    Raises:
        ValueError: there is no such precision.

    >>> import numpy as np
    >>> import tracegraph
    >>> product = tracegraph.jit(lambda x, y: x @ y)
    >>> with tracegraph.matmul_precision("tf32"):
    ...     product(np.eye(2, dtype=np.float32), np.ones((2, 1), np.float32))
    Array([[1.],
           [1.]], dtype=float32)
    """
    if precision not in get_args(Precision):
        names = ", ".join(map(repr, get_args(Precision)))
        raise ValueError(f"matmul_precision got {precision!r}; write one of {names}")
    with _changed(matmul_precision=precision):
        yield


@contextmanager
def unchanged() -> Iterator[None]:
    """A block without modes, for what must not depend on where it is traced."""
    token = _modes.set(PLAIN)
    try:
        yield
    finally:
        _modes.reset(token)


def current_precision() -> Precision:
    """The precision of products that the caller asks for."""
    return _modes.get().matmul_precision if process.entered else "float32"


def is_deterministic() -> bool:
    """Whether the caller is inside a `deterministic` block."""
    return process.entered and _modes.get().deterministic


def are_indices_checked() -> bool:
    """Whether the caller is inside a `check_indices` block."""
    return process.entered and _modes.get().checked_indices
