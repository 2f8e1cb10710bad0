"""What watching and stopping cost: ``python -m benchmarks.loop_overhead``, by hand, on a GPU.

Prints medians and quartiles of microseconds: per iteration of a loop over 1 Ki numbers without and
with progress, per call of a small program with a wait, and how long a stop takes.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

import tracegraph

STEPS = 10_000
REPEATS = 50


def _measured(run, count):
    """Quartiles of the microseconds of one of `count` things that a run does."""
    run()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) / count * 1e6)
    return statistics.quantiles(times, n=4)


def _loop(progress):
    @tracegraph.jit(device="cuda")
    def run(x, n):
        return tracegraph.fori_loop(0, n, lambda i, x: x * 0.99 + 0.5, x, progress=progress)

    x = tracegraph.asarray(np.zeros(1024, np.float32), device="cuda")
    return lambda: run(x, STEPS).synchronize()


def _calls():
    f = tracegraph.jit(lambda x, a, b: x * a + b, device="cuda")
    x = tracegraph.asarray(np.zeros(1024, np.float32), device="cuda")

    def run():
        for _ in range(100):
            f(x, 2.0, 1.0).synchronize()

    return run


def _stop():
    @tracegraph.jit(device="cuda")
    def endless(x):
        return tracegraph.while_loop(lambda x: (x > -1).all(), lambda x: x + 1, x)

    x = tracegraph.asarray(np.zeros(1024), device="cuda")

    def run():
        result = endless(x)
        try:
            with tracegraph.time_limit(0):
                result.synchronize()
        except tracegraph.errors.TimeLimitError:
            return
        raise AssertionError("the loop ended by itself")

    return run


def main():
    """Print the table."""
    from cuda.core import Device

    print(f"{Device(0).name}, Python {sys.version.split()[0]}, {REPEATS} repeats; microseconds")
    rows = [
        ("iteration without progress", _loop(False), STEPS),
        ("iteration with progress", _loop(lambda step, total: None), STEPS),
        ("call of x * a + b, with a wait", _calls(), 100),
        ("launch and stop of an endless loop", _stop(), 1),
    ]
    for name, run, count in rows:
        low, median, high = _measured(run, count)
        print(f"{name:36}  {median:10.3f}   ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
