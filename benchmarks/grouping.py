"""Whether fused kernels are ever slower than a kernel for each equation:
``python -m benchmarks.grouping``.

Random programs over matrices, their rows and columns are compiled both ways and timed in turns, the
results compared. One line a program: sizes, nodes and medians of both, and how many times as fast
the fused one is; the slowest of them last, with its steps. It fails where the median program is not
faster, or where one stays slower by more than a tenth each time that it is timed again.
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from lowering import backend
from lowering.lower import lower
from lowering.plan.plan import Plan
from tracegraph import ArrayType, make_program
from tracegraph.staging.compiler import default_device

STEPS = 12
LARGEST = {"cuda": 1 << 24, "host": 1 << 20}
SMALLEST = 1 << 8
NOISE = 1.1
"""A program that takes longer by more than this factor seems slower."""
REPEATS = 3

Arrays = list[np.ndarray]
Step = tuple[str, Callable[..., Any], tuple[int, ...]]


def _anywhere(extent: int, count: int) -> np.ndarray:
    """Positions along an axis, out of order."""
    return np.random.default_rng(extent).integers(0, extent, count, np.int32)


UNARY = {
    "sin": np.sin,
    "tanh": np.tanh,
    "square": np.square,
    "transpose": np.transpose,
    "flip": np.flip,
    "cumsum": lambda x: np.cumsum(x, axis=-1),
    "roll": lambda x: np.roll(x, 1, axis=-1),
    "elements": lambda x: x.ravel()[_anywhere(x.size, x.size)].reshape(x.shape),
    "rows": lambda x: x[_anywhere(len(x), len(x))],
    "few rows": lambda x: x[_anywhere(len(x), 1 + len(x) // 16)],
    "sum": np.sum,
    "rows' max": lambda x: np.max(x, axis=-1, keepdims=True),
    "rows' sum": lambda x: np.sum(x, axis=-1, keepdims=True),
    "columns' mean": lambda x: np.mean(x, axis=0, keepdims=True),
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "where": lambda x, y: np.where(x > y, x, y * 0.5),
}


@dataclass(frozen=True)
class Chain:
    """Steps that each take earlier values; the results are those that no other step takes."""

    steps: tuple[Step, ...]

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        known = list(values)
        for _, function, operands in self.steps:
            known.append(function(*(known[i] for i in operands)))
        taken = {i for _, _, operands in self.steps for i in operands}
        return tuple(known[i] for i in range(len(values), len(known)) if i not in taken)

    def __str__(self) -> str:
        return "; ".join(f"{name} {', '.join(map(str, which))}" for name, _, which in self.steps)


def draw(rng: np.random.Generator, largest: int) -> tuple[Chain, Arrays]:
    """A random chain, and a matrix, a row, a column and another matrix for it."""
    size = 2 ** rng.uniform(np.log2(SMALLEST), np.log2(largest))
    rows = max(1, int(size ** rng.uniform(0.0, 1.0)))
    columns = max(1, int(size / rows))
    shapes = ((rows, columns), (1, columns), (rows, 1), (rows, columns))
    arguments = [rng.random(shape, np.float32) for shape in shapes]
    known = [ArrayType(x.dtype, x.shape) for x in arguments]
    steps: list[Step] = []
    while len(steps) < STEPS:
        operands = (int(rng.integers(max(0, len(known) - 4), len(known))),)
        if rng.random() < 0.5:
            name = str(rng.choice(list(UNARY)))
            function = UNARY[name]
        else:
            name = str(rng.choice(list(BINARY)))
            function, operands = BINARY[name], (*operands, int(rng.integers(len(known))))
        try:
            (result,) = make_program(function)(*(known[i] for i in operands)).out_types
        except (ValueError, TypeError):  # shapes that do not broadcast, a number that has no rows
            continue
        if result.size <= 2 * size + SMALLEST:
            steps.append((name, function, operands))
            known.append(result)
    return Chain(tuple(steps)), arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; 1 where fusing does not pay, or slows a program down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default=default_device().split(":")[0])
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.2, help="of timing a program")
    parser.add_argument("--seed", type=int)
    options = parser.parse_args(arguments)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    rng = np.random.default_rng(seed)
    print(f"{options.device}, seed {seed}; microseconds")
    found = [
        _compare(*draw(rng, LARGEST[options.device]), options.device, options.seconds)
        for _ in range(options.programs)
    ]
    for comparison in found:
        if comparison.slower:
            print(f"slower each time: {comparison.program}")
    ratios = [comparison.ratio for comparison in found]
    print(f"times as fast: median {statistics.median(ratios):.2f}, least {min(ratios):.2f}")
    print(min(found, key=lambda comparison: comparison.ratio).program)
    return int(not passes(found))


@dataclass(frozen=True)
class Comparison:
    """How many times as fast a fused program was, each time that it was timed."""

    program: str
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def slower(self) -> bool:
        return all(map(_is_slower, self.ratios))


def passes(found: Sequence[Comparison]) -> bool:
    """Whether fusing pays in the median, and no program is slower for it each time."""
    return statistics.median(c.ratio for c in found) >= 1 and not any(c.slower for c in found)


def _is_slower(ratio: float) -> bool:
    return ratio * NOISE < 1


def _compare(chain: Chain, arguments: Arrays, device: str, seconds: float) -> Comparison:
    """Compile, check and time a program; one that seems slower is timed `REPEATS` times more."""
    plans, runs = _both_ways(chain, arguments, device)
    if not _agree(runs):  # as the sine of a large sum may not, of which the order differs
        exact = [x.astype(np.float64) for x in arguments]
        assert _agree(_both_ways(chain, exact, device)[1]), f"results differ: {chain}"
    nodes = [plan.node_counts.total() for plan in plans]
    rows, columns = arguments[0].shape
    ratios: list[float] = []
    while not ratios or (_is_slower(ratios[-1]) and len(ratios) <= REPEATS):
        fast, slow = medians(runs, _wait, seconds)
        ratios.append(slow / fast)
        line = f"{rows} x {columns}: {nodes[0]} nodes {fast:.1f}, {nodes[1]} nodes {slow:.1f}"
        print(f"{line}, {ratios[-1]:.2f} times as fast", flush=True)
    return Comparison(f"{line}: {chain}", tuple(ratios))


def _both_ways(
    chain: Chain, arguments: Arrays, device: str
) -> tuple[list[Plan], list[Callable[[], Any]]]:
    """The plans, fused and unfused, and what runs them."""
    traced = tracegraph.jit(chain, device=device).trace(*arguments)
    plans = [lower(traced.optimized, device, fusion=fusion) for fusion in (True, False)]
    executables = [backend(device).compile(plan) for plan in plans]
    placed = [tracegraph.asarray(x, device=device).data for x in arguments]
    return plans, [partial(executable, placed) for executable in executables]


def _agree(runs: Sequence[Callable[[], Any]]) -> bool:
    results = [[np.asarray(_on_host(result)) for result in run()] for run in runs]
    return all(
        np.allclose(fused, unfused, rtol=1e-3, atol=1e-3 * np.max(np.abs(unfused)), equal_nan=True)
        for fused, unfused in zip(*results, strict=True)
    )


def _on_host(result: Any) -> Any:
    return result.to_host() if hasattr(result, "to_host") else result


def _wait(results: Any) -> None:
    for result in results:
        if hasattr(result, "synchronize"):
            result.synchronize()


if __name__ == "__main__":
    sys.exit(main())
