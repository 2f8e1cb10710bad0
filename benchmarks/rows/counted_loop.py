"""fori_loop with a trip count that is known when it is compiled."""

from __future__ import annotations

from functools import partial

from benchmarks.harness.capture import and_graphs, warp_graph
from benchmarks.harness.own import written_once
from benchmarks.harness.python_loops import repeated
from benchmarks.harness.row import PER_ITERATION, Row

STEPS = 1000
FACTOR, SUMMAND = 0.99, 0.5


def _inputs_of(size):
    return lambda draw: [draw.uniform(draw.size(size), draw.dtype("float32", "float64"))]


def _step(x):
    return x * FACTOR + SUMMAND


def _program(xp, loops):
    return lambda x: loops.fori_loop(0, STEPS, lambda i, x: _step(x), x)


def _torch(x):
    import torch

    return partial(repeated(torch.compile(_step), STEPS), x)


def _cupy(x):
    import cupy

    step = cupy.ElementwiseKernel("T x", "T y", "y = x * (T)0.99 + (T)0.5", "bench_step")

    def run():
        y = step(x)
        for _ in range(STEPS - 1):
            step(y, y)
        return y

    return run


def _warp(x):
    import warp

    from .warp_kernels import relax

    y = warp.empty_like(x)

    def run():
        warp.copy(y, x)
        for _ in range(STEPS):
            warp.launch(relax, y.shape, [y])
        return y

    return warp_graph(run)


FORI_1KI, FORI_1MI = (
    Row(
        name=f"fori_{label}",
        title=f"fori_loop, {STEPS} iterations of x*0.99 + 0.5",
        inputs=_inputs_of(size),
        contestants={
            **written_once(_program),
            **and_graphs(torch=_torch, cupy=_cupy),
            "warp graph": _warp,
        },
        limits=("fori in one kernel",),
        unit=PER_ITERATION,
        work=lambda inputs, results: STEPS,
    )
    for label, size in (("1ki", 1 << 10), ("1mi", 1 << 20))
)

ROWS = (FORI_1KI, FORI_1MI)
