"""Updates at indices that are data, in each form: ``python -m benchmarks.updates``, on a GPU.

Each line has microseconds a call for a count of updates and of elements: in any order by atomic
operations, at indices that are promised to be unique, sorted by element, and one after the other;
and the form that is chosen where an order is needed. `sorted_updates` of the target of
`lowering.backends.cuda` is right if that is the faster one. Dtypes are arguments.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from lowering.backends.cuda import TARGET
from lowering.plan.target.overrides import override
from lowering.planning.expansion.grouped_updates import UpdateForm

SECONDS = 0.3
COUNTS = (64, 256, 512, 1024, 2048, 4096, 8192, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
LONGEST = 1 << 18
"""The most updates that are made one after the other."""


def _given(count: int, places: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(count)
    i = rng.permutation(places)[:count] if places >= count else rng.integers(0, places, count)
    arrays = (np.zeros(places, dtype), i, rng.uniform(-1, 1, count).astype(dtype))
    return [tracegraph.asarray(x, device="cuda") for x in arrays]


def _call(given: Sequence[Any], form: UpdateForm | None, unique: bool) -> Callable[[], Any]:
    """Runs sums, in any order if there is no form."""

    def function(x: Any, i: Any, v: Any) -> Any:
        return x.at[i].add(v, unique=unique)

    with override(updates=form), tracegraph.deterministic() if form else nullcontext():
        compiled = tracegraph.jit(function, device="cuda").lower(*given).compile()
    return lambda: compiled(*given)


def main(words: Sequence[str]) -> None:
    """Print the table of each dtype."""
    for dtype in words or ("float32", "float64"):
        print(f"{dtype}, µs: updates, elements, any order, unique, sorted, in turn, chosen")
        for count in COUNTS:
            for places in (count, max(count // 64, 1), 8):
                given = _given(count, places, dtype)
                calls = [_call(given, None, False)]
                calls.append(_call(given, None, places == count))  # else it may not be promised
                calls.append(_call(given, "sorted", False))
                if count <= LONGEST:
                    calls.append(_call(given, "sequential", False))
                times = medians(calls, tracegraph.Array.synchronize, SECONDS)
                any_order, unique, ordered, in_turn = [*times, np.inf][:4]
                chosen = "sorted" if count >= TARGET.sorted_updates else "in turn"
                slower = "  <- slower" if (chosen == "sorted") != (ordered <= in_turn) else ""
                figures = f"{any_order:9.1f} {unique:9.1f} {ordered:9.1f} {in_turn:9.1f}"
                print(f"{count:8} {places:8} {figures}  {chosen}{slower}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
