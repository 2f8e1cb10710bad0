"""scan that stacks one number a step."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.capture import and_graphs, warp_graph
from benchmarks.harness.own import eager, written_once
from benchmarks.harness.row import PER_ITERATION, Row
from lowering.plan.nests.rounding import ceil_div

STEPS = 1000
FACTOR = 0.995


def _inputs(draw):
    return [draw.uniform(draw.size(1024), draw.dtype("float32", "float64"))]


def _program(xp, loops):
    return lambda x: loops.scan(lambda c, _: (c * FACTOR, xp.sum(c)), x, None, length=STEPS)


def _numpy(x):
    sums = np.empty(STEPS, x.dtype)
    for i in range(STEPS):
        sums[i] = np.sum(x)
        x = x * FACTOR
    return x, sums


def _torch(x):
    import torch

    step = torch.compile(lambda x: (x * FACTOR, x.sum()))

    def run():
        y, sums = x, []
        for _ in range(STEPS):
            y, total = step(y)
            sums.append(total)
        return y, torch.stack(sums)

    return run


def _cupy(x):
    import cupy

    def run():
        y, sums = x.copy(), cupy.empty(STEPS, x.dtype)
        for i in range(STEPS):
            y.sum(out=sums[i])
            y *= FACTOR
        return y, sums

    return run


def _warp(x):
    import warp

    from .warp_kernels import TILE, sum_and_scale

    y, sums = warp.empty_like(x), warp.empty(STEPS, dtype=x.dtype)
    factor = warp.array([FACTOR], dtype=x.dtype)
    blocks = ceil_div(x.size, int(TILE))

    def run():
        warp.copy(y, x)
        sums.zero_()
        for i in range(STEPS):
            inputs = [y, factor, sums, i]
            warp.launch_tiled(sum_and_scale, dim=[blocks], inputs=inputs, block_dim=int(TILE))
        return y, sums

    return warp_graph(run)


SCAN = Row(
    name="scan",
    title=f"scan with a sum as its output, {STEPS} steps",
    inputs=_inputs,
    contestants={
        **written_once(_program),
        "numpy": eager(_numpy),  # stacking the sums at the end would take a third longer
        **and_graphs(torch=_torch, cupy=_cupy),
        "warp graph": _warp,
    },
    limits=("scan in one kernel",),
    unit=PER_ITERATION,
    work=lambda inputs, results: STEPS,
)

ROWS = (SCAN,)
