"""What the generator of random programs knows of values, and how it keeps them exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tracegraph.generated.dataclass import dataclass

DTYPES = tuple(map(np.dtype, ("int8", "int32", "int64", "uint16", "float32", "float64")))

LIMIT = 100
"""Values are brought into -LIMIT..LIMIT after every step, which keeps all sums exact."""

MAX_SIZE = 200
MAX_RANK = 4

Env = list[Any]
"""The values of a running program, by number."""

Step = Callable[[Env], tuple[Any, ...]]
"""Computes new values from those so far."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the generator knows of a value: enough to choose legal steps."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def sample(self) -> NDArray[Any]:
        """Zeros of this shape and dtype."""
        return np.zeros(self.shape, self.dtype)

    @staticmethod
    def of(array: NDArray[Any]) -> Known:
        """What is known of an array."""
        return Known(array.shape, array.dtype)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A step with what is known of its values, and its text, of several lines if it has bodies."""

    step: Step
    results: tuple[Known, ...]
    text: str


@dataclass(frozen=True)
class StepScope:
    """Where a step is drawn: the values it may use, how many levels of bodies it may have, and
    whether it may print.
    """

    draw: st.DrawFn
    depth: int
    known: list[Known] = field(default_factory=list)
    effects: bool = False

    def pick(self, accept: Callable[[Known], bool] = lambda _: True) -> int | None:
        """The number of an acceptable value, or None if there is none."""
        fitting = [i for i, known in enumerate(self.known) if accept(known)]
        # later values more often: long chains are where fusion can go wrong
        return self.draw(st.sampled_from(fitting[-4:] + fitting)) if fitting else None

    def any(self) -> int:
        """The number of a value."""
        found = self.pick()
        assert found is not None, "a program has at least one argument"
        return found


@st.composite
def arrays(draw: st.DrawFn) -> NDArray[Any]:
    """Small arrays of small whole numbers; now and then an extent is 0."""
    extents = st.sampled_from([1, 2, 3, 4, 5, 3, 2, 0])
    shape = tuple(draw(st.lists(extents, max_size=3)))
    dtype = draw(st.sampled_from(DTYPES))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    return np.asarray(random.integers(0 if dtype.kind == "u" else -9, 10, shape)).astype(dtype)


def small(shape: tuple[int, ...]) -> bool:
    """Whether a value may have this shape."""
    return len(shape) <= MAX_RANK and int(np.prod(shape)) <= MAX_SIZE


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The common shape, or None if there is none or it is too large."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    return shape if small(shape) else None


def bounded(x: Any) -> Any:
    """`x` brought into the range where all arithmetic is exact, dtype kept."""
    return np.clip(x, 0 if x.dtype.kind == "u" else -LIMIT, LIMIT).astype(x.dtype)


def conform(x: Any, like: Known) -> Any:
    """`x` made into a value of a given shape and dtype: what control flow demands of its bodies."""
    signless = np.absolute if like.dtype.kind == "u" else np.positive
    if x.shape == like.shape:
        return bounded(signless(x).astype(like.dtype))
    total = signless(bounded(np.sum(x))).astype(like.dtype)
    return bounded(np.broadcast_to(total, like.shape) + like.sample)
