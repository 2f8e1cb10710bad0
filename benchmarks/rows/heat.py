"""The heat equation on a periodic grid: a 5-point stencil written with roll."""

from __future__ import annotations

from functools import partial

from benchmarks.harness.capture import and_graphs, warp_graph
from benchmarks.harness.own import written_once
from benchmarks.harness.python_loops import repeated
from benchmarks.harness.row import PER_ITERATION, Row

STEPS = 1000
RATE = 0.1


def _inputs(draw):
    shape = draw.size(512), draw.size(512)
    return [draw.uniform(shape, draw.dtype("float32", "float64"))]


def _step(roll, u):
    around = roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1)
    return u + RATE * (around - 4 * u)


def _program(xp, loops):
    return lambda u: loops.fori_loop(0, STEPS, lambda i, u: _step(xp.roll, u), u)


def _torch(u):
    import torch

    step = torch.compile(lambda u: _step(torch.roll, u))
    return partial(repeated(step, STEPS), u)


def _cupy(u):
    import cupy

    step = cupy.ElementwiseKernel(
        "raw T u, int32 rows, int32 columns",
        "T out",
        f"""
        int row = i / columns, column = i % columns;
        int up = row ? row - 1 : rows - 1, down = row + 1 < rows ? row + 1 : 0;
        int left = column ? column - 1 : columns - 1, right = column + 1 < columns ? column + 1 : 0;
        T here = u[i];
        T around = u[up * columns + column] + u[down * columns + column]
                 + u[row * columns + left] + u[row * columns + right];
        out = here + (T){RATE} * (around - (T)4 * here);
        """,
        "bench_heat",
    )

    def run():
        old, new = u.copy(), cupy.empty_like(u)
        for _ in range(STEPS):
            step(old, *u.shape, new)
            old, new = new, old
        return old

    return run


def _warp(u):
    import warp

    from .warp_kernels import diffuse

    old, new = warp.empty_like(u), warp.empty_like(u)

    def run():
        warp.copy(old, u)
        buffers = old, new
        for _ in range(STEPS):
            warp.launch(diffuse, u.shape, [*buffers])
            buffers = buffers[::-1]
        return buffers[0]

    return warp_graph(run)


HEAT = Row(
    name="heat",
    title=f"heat equation, 5-point stencil by roll, {STEPS} steps",
    inputs=_inputs,
    contestants={
        **written_once(_program),
        **and_graphs(torch=_torch, cupy=_cupy),
        "warp graph": _warp,
    },
    limits=("heat in one kernel",),
    unit=PER_ITERATION,
    work=lambda inputs, results: STEPS,
)

ROWS = (HEAT,)
