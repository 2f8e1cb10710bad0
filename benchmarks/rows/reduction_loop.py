"""while_loop for as long as a sum is above a threshold.

Each step scales the sum by the same factor, so the threshold half a step behind the thousandth
makes a thousand steps in any order of summation.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness.capture import warp_graph
from benchmarks.harness.own import written_once
from benchmarks.harness.row import PER_ITERATION, Draw, Row, steps_taken
from lowering.plan.nests.rounding import ceil_div

STEPS = 1000
FACTOR = 0.99


def inputs_of(size: int):
    def inputs(draw: Draw):
        x = draw.uniform(draw.size(size), draw.dtype("float32", "float64"), 1.0, 2.0)
        return x, float(np.sum(x, dtype=np.float64)) * FACTOR ** (STEPS - 0.5)

    return inputs


def _program(xp, loops):
    return lambda x, threshold: loops.while_loop(
        lambda c: xp.sum(c[0]) > threshold, lambda c: (c[0] * FACTOR, c[1] + 1), (x, 0)
    )


def _torch(x, threshold):
    import torch
    from torch._higher_order_ops import while_loop

    @torch.compile(fullgraph=True)
    def f(x, threshold, zero):
        return while_loop(
            lambda x, k, t: x.sum() > t,
            lambda x, k, t: (x * FACTOR, k + 1, t.clone()),
            (x, zero, threshold),
        )

    zero = torch.zeros((), dtype=torch.int64, device=x.device)
    limit = torch.tensor(threshold, dtype=x.dtype, device=x.device)
    return lambda: f(x, limit, zero)[:2]


def _cupy(x, threshold):
    import cupy

    def run():
        y, steps = x.copy(), 0
        while y.sum() > threshold:
            y *= FACTOR
            steps += 1
        return y, cupy.asarray(steps)

    return run


def _warp(x, threshold):
    import warp

    from .warp_kernels import TILE, scale_and_sum, still_above

    y, total = warp.empty_like(x), warp.zeros(1, dtype=x.dtype)
    no_factor, factor, limit = (warp.array([v], dtype=x.dtype) for v in (1.0, FACTOR, threshold))
    steps = warp.zeros(1, dtype=warp.int64)
    condition = warp.zeros(1, dtype=warp.int32)
    blocks = ceil_div(x.size, int(TILE))

    def advance(by):
        warp.launch_tiled(scale_and_sum, dim=[blocks], inputs=[y, by, total], block_dim=int(TILE))
        warp.launch(still_above, 1, [total, limit, steps, condition])

    def run():
        warp.copy(y, x)
        steps.fill_(-1)
        total.zero_()
        advance(no_factor)
        warp.capture_while(condition, advance, by=factor)
        return y, steps

    return warp_graph(run)


CONTESTANTS = {
    **written_once(_program),
    "torch": _torch,
    "cupy": _cupy,
    "warp graph": _warp,
}

WHILE_1KI, WHILE_1MI = (
    Row(
        name=f"while_{label}",
        title=f"while_loop on a sum, {STEPS} iterations",
        inputs=inputs_of(size),
        contestants=CONTESTANTS,
        limits=limits,
        unit=PER_ITERATION,
        work=steps_taken,
    )
    for label, size, limits in (
        ("1ki", 1 << 10, ("while in one kernel", "while node")),
        ("1mi", 1 << 20, ("while in one kernel",)),
    )
)

ROWS = (WHILE_1KI, WHILE_1MI)
