"""Single functions of NumPy on the host, jitted and eager: ``python -m benchmarks.single``.

A call of a jitted function costs a microsecond or two more than one of NumPy, however little it
does.
One line a function: microseconds of both, and how many times as fast the jitted one is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians

Arrays = dict[str, np.ndarray]

FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "x + y": (lambda x, y: x + y, "x y"),
    "x ** 2": (lambda x: x**2, "x"),
    "x ** 0.5": (lambda x: x**0.5, "x"),
    "x ** 3": (lambda x: x**3, "x"),
    "x % y": (lambda x, y: x % y, "x y"),
    "exp": (np.exp, "x"),
    "tanh": (np.tanh, "x"),
    "arctan2": (np.arctan2, "x y"),
    "clip": (lambda x: np.clip(x, 0.2, 0.8), "x"),
    "isnan": (np.isnan, "x"),
    "where": (np.where, "flags x y"),
    "sum": (np.sum, "x"),
    "max": (np.max, "x"),
    "std": (np.std, "x"),
    "argmax": (np.argmax, "x"),
    "norm": (np.linalg.norm, "x"),
    "rows' sums": (lambda a: a.sum(1), "a"),
    "columns' sums": (lambda a: a.sum(0), "a"),
    "columns' variances": (lambda a: np.var(a, axis=0), "a"),
    "rows' argmin": (lambda a: np.argmin(a, axis=1), "a"),
    "cumsum": (np.cumsum, "x"),
    "columns' cumsum": (lambda a: np.cumsum(a, axis=0), "a"),
    "points' norms": (lambda p: np.linalg.norm(p, axis=1), "points"),
    "points' centre": (lambda p: p - p.mean(0), "points"),
    "reversed": (lambda x: x[::-1] * 2, "x"),
    "every other": (lambda x: x[::2] + 1, "x"),
    "roll": (lambda x: np.roll(x, 3), "x"),
    "diff": (np.diff, "x"),
    "pad": (lambda a: np.pad(a, 1), "a"),
    "concatenate": (lambda x, y: np.concatenate([x, y]), "x y"),
    "stack": (lambda x, y: np.stack([x, y], axis=1), "x y"),
    "repeat": (lambda x: np.repeat(x, 2), "x"),
    "tril": (np.tril, "a"),
    "elements": (lambda x, i: x[i], "x anywhere"),
    "few elements": (lambda x, i: x[i], "x few"),
    "rows": (lambda a, i: a[i], "a row"),
    "columns": (lambda a, i: a[:, i], "a row"),
    "diagonal of rows": (lambda a, i: a[i, i], "a row"),
    "take_along_axis": (lambda a, i: np.take_along_axis(a, i, axis=1), "a places"),
    "dot": (np.dot, "x y"),
    "matrix @ vector": (lambda a: a @ a[0], "a"),
    "matrix @ matrix": (lambda a: a @ a, "a"),
    "einsum": (lambda a: np.einsum("ij,ij->i", a, a), "a"),
    "softmax": (lambda a: (lambda e: e / e.sum(-1, keepdims=True))(np.exp(a - a.max())), "a"),
    "integers // 7": (lambda i: i // 7, "anywhere"),
}
"""A function, and the arrays that it takes."""

UPDATES: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "set elements": (lambda x, i: x.at[i].set(2), lambda x, i: x.__setitem__(i, 2), "x few"),
    "add to elements": (lambda x, i: x.at[i].add(2), lambda x, i: np.add.at(x, i, 2), "x few"),
    "set a slice": (lambda x: x.at[3:9].set(2), lambda x: x.__setitem__(slice(3, 9), 2), "x"),
}
"""The same for updates, with what NumPy does to a copy."""


def draw(size: int, dtype: str) -> Arrays:
    """Arrays of about as many elements, by name."""
    rng = np.random.default_rng(0)
    side = max(2, isqrt(size))
    arrays = {
        "x": rng.random(size),
        "y": rng.random(size),
        "a": rng.random((side, side)),
        "points": rng.random((max(1, size // 3), 3)),
    }
    return {name: array.astype(dtype) for name, array in arrays.items()} | {
        "flags": rng.random(size) > 0.5,
        "anywhere": rng.integers(0, size, size),
        "few": rng.integers(0, size, max(1, size // 20)),
        "row": rng.integers(0, side, side),
        "places": rng.integers(0, side, (side, side)),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; 1 if a result differs from NumPy's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--dtype", default="float32", choices=("float32", "float64"))
    parser.add_argument("--seconds", type=float, default=0.2, help="of timing a function")
    parser.add_argument("--only", default="", help="names to leave all others out, with commas")
    options = parser.parse_args(arguments)
    arrays = draw(options.size, options.dtype)
    only = set(filter(None, options.only.split(",")))
    different = 0
    for name, jitted, eager in _pairs(arrays):
        if only and name not in only:
            continue
        if not np.allclose(jitted(), eager(), rtol=1e-3, atol=1e-3, equal_nan=True):
            different += 1
            print(f"{name}: the result differs from NumPy's")
            continue
        ours, numpys = medians((jitted, eager), lambda result: None, options.seconds)
        print(f"{name:20} {ours:10.1f} {numpys:10.1f} {numpys / ours:6.2f}", flush=True)
    return int(different > 0)


def _pairs(arrays: Arrays) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    pairs = []
    for name, (function, takes) in FUNCTIONS.items():
        given = [arrays[each] for each in takes.split()]
        pairs.append((name, _jitted(function, given), partial(function, *given)))
    for name, (function, update, takes) in UPDATES.items():
        given = [arrays[each] for each in takes.split()]
        pairs.append((name, _jitted(function, given), partial(_updated, update, *given)))
    return pairs


def _jitted(function: Callable[..., Any], given: list[np.ndarray]) -> Callable[[], Any]:
    # a function of its own: NumPy's have no signature that tracing could keep to
    return partial(tracegraph.jit(lambda *arrays: function(*arrays), device="host"), *given)


def _updated(update: Callable[..., Any], x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    copy = x.copy()
    update(copy, *rest)
    return copy


if __name__ == "__main__":
    sys.exit(main())
