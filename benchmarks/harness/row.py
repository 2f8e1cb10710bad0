"""Row: one piece of work, and how each library does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .agreement import close

Inputs = Sequence[Any]
"""NumPy arrays and Python numbers."""

Results = Sequence[np.ndarray]

Prepare = Callable[..., Callable[[], Any]]
"""Takes the inputs as arrays of a library, compiles what can be compiled, and returns what is then
timed: a function without arguments that returns arrays of that library, or a sequence of them."""


@dataclass(frozen=True)
class Unit:
    """How the seconds that some work takes become a figure.

    A rate is work per second, in units of `scale`; else the figure is seconds per unit of work,
    times `scale`.
    """

    label: str
    scale: float
    rate: bool = False

    def figure(self, seconds: float, work: float) -> float:
        return work / seconds / self.scale if self.rate else seconds / work * self.scale

    def advantage(self, ours: float, theirs: float) -> float:
        """How many times as fast as `theirs` `ours` is."""
        return ours / theirs if self.rate else theirs / ours


NANOSECONDS = Unit("ns", 1e9)
MICROSECONDS = Unit("µs", 1e6)
MILLISECONDS = Unit("ms", 1e3)
PER_ITERATION = Unit("µs/iteration", 1e6)
PER_EQUATION = Unit("µs/equation", 1e6)
PER_CONSTRUCT = Unit("µs/construct", 1e6)
GIGABYTES = Unit("GB/s", 1e9, rate=True)


@dataclass(frozen=True)
class Draw:
    """The inputs of rows: of fixed sizes and dtypes, or of random ones.

    On the host, rows whose arrays are meant for a GPU's memory are smaller.
    """

    rng: np.random.Generator
    on_host: bool
    random: bool

    @classmethod
    def of(cls, row: str, seed: int, device: str, shapes: str) -> Draw:
        """The same inputs for the same row and seed, whichever other rows are run."""
        rng = np.random.default_rng([seed, *row.encode()])
        return cls(rng, device == "host", shapes == "random")

    def size(self, fixed: int, on_host: int | None = None) -> int:
        """The fixed size, or an odd one that is up to 40 % away from it."""
        if self.on_host and on_host is not None:
            fixed = on_host
        return int(self.rng.uniform(0.6, 1.4) * fixed) | 1 if self.random else fixed

    def dtype(self, fixed: str = "float32", *others: str) -> np.dtype:
        return np.dtype(self.rng.choice((fixed, *others)) if self.random else fixed)

    def uniform(self, shape: int | tuple[int, ...], dtype: np.dtype, low=0.0, high=1.0):
        unit = self.rng.random(shape, np.float64 if dtype == np.float64 else np.float32)
        unit *= high - low
        unit += low
        return unit.astype(dtype, copy=False)


def one(inputs: Inputs, results: Results) -> float:
    """The work of a call is one call."""
    return 1


def steps_taken(inputs: Inputs, results: Results) -> float:
    """The work of a loop that returns its number of steps as the last result."""
    return float(results[-1].item())


def traffic(inputs: Inputs, results: Results) -> float:
    """The bytes that must be moved at least: every input read once, every result written once."""
    return sum(x.nbytes for x in (*inputs, *results) if isinstance(x, np.ndarray))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One piece of work.

    `contestants` maps labels, whose first word names the library, to its way of doing the work;
    that of "numpy" gives the results that all others must agree with; without it, the first peer
    does. `work` is how much of it one run is. `limits` are names of `limits.LIMITS` and of
    `hand_loops.HAND_LOOPS`. A row that does not wait measures how long a call keeps its thread.
    One that does not compute has no results, and its contestants run in this process alone.
    `derivative_of` names the row of the function that this one is the gradient of: it has the same
    inputs, and the report compares their times.
    """

    name: str
    title: str
    inputs: Callable[[Draw], Inputs]
    contestants: Mapping[str, Prepare]
    unit: Unit = MICROSECONDS
    work: Callable[[Inputs, Results], float] = one
    agrees: Callable[[Results, Results], str | None] = close
    limits: Sequence[str] = ()
    waits: bool = True
    computes: bool = True
    derivative_of: str | None = None
    devices: Sequence[str] = field(default=("cuda", "host"))
