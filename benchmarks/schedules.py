"""What schedules take beside what is estimated: ``python -m benchmarks.schedules``, on a GPU.

Branches, as nodes and predicated, by kernels in a branch and elements; loops, by kernels in the
body and steps in an iteration. The costs of `lowering.backends.cuda` are right if the faster one is
chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.measure import medians
from lowering.plan.reports.explain import explain

STEPS = 2000
SECONDS = 0.3


def _work(x: Any, kernels: int, sign: int) -> Any:
    """A chain that takes as many kernels: running sums are not merged with each other."""
    for _ in range(kernels):
        x = np.cumsum(x * sign, dtype=x.dtype)
    return x


def _branch(kernels: int, size: int, schedule: str | None) -> tuple[float, str]:
    @tracegraph.jit(device="cuda")
    def run(p: Any, x: Any) -> Any:
        yes, no = (lambda x, s=s: _work(x, kernels, s) for s in (1, -1))
        return tracegraph.cond(p, yes, no, x, schedule=schedule)

    x = tracegraph.asarray(np.zeros(size, np.float32), device="cuda")
    flag = tracegraph.asarray(np.array(True), device="cuda")
    chosen = explain(run.lower(flag, x).plan).splitlines()[-1].split()[3]
    (median,) = medians([lambda: run(flag, x)], tracegraph.Array.synchronize, SECONDS)
    return median, chosen


def _loop(kernels: int, unroll: int | None) -> tuple[float, str]:
    @tracegraph.jit(device="cuda")
    def run(x: Any, n: Any) -> Any:
        return tracegraph.while_loop(
            lambda c: c[1] < n, lambda c: (_work(c[0], kernels, 1), c[1] + 1), (x, 0), unroll=unroll
        )[0]

    x = tracegraph.asarray(np.zeros(256, np.float32), device="cuda")
    n = tracegraph.asarray(np.array(STEPS), device="cuda")
    chosen = explain(run.lower(x, n).plan).splitlines()[-1].split()
    (median,) = medians([lambda: run(x, n)], tracegraph.Array.synchronize, SECONDS)
    return median / STEPS, " ".join(chosen[3:5])


def main() -> None:
    """Print both tables."""
    print("branches, µs a call: kernels, elements, as a node, predicated, estimated")
    for kernels in (1, 3, 8):
        for size in (1 << 10, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26):
            times = [_branch(kernels, size, s)[0] for s in ("conditional", "predicated")]
            chosen = _branch(kernels, size, None)[1]
            print(f"{kernels:3} {size:10} {times[0]:10.1f} {times[1]:10.1f}  {chosen}", flush=True)
    print("loops, µs a step: kernels, then by steps in an iteration 1, 2, 4, 8, 16, and estimated")
    for kernels in (1, 2, 4, 8):
        times = [_loop(kernels, unroll)[0] for unroll in (1, 2, 4, 8, 16)]
        chosen_time, chosen = _loop(kernels, None)
        shown = " ".join(f"{t:7.2f}" for t in times)
        print(f"{kernels:3} {shown} {chosen_time:7.2f}  {chosen}", flush=True)


if __name__ == "__main__":
    main()
