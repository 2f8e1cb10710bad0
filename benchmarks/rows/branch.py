"""A branch on a value that the device computes."""

from __future__ import annotations

from benchmarks.harness.capture import warp_graph
from benchmarks.harness.own import written_once
from benchmarks.harness.row import Row
from lowering.plan.nests.rounding import ceil_div


def _inputs(draw):
    return [draw.uniform(draw.size(1024), draw.dtype("float32", "float64"), -0.5, 1.0)]


def _program(xp, loops):
    return lambda x: loops.cond(
        xp.sum(x) > 0, lambda x: xp.sin(x) * 1.5, lambda x: xp.cos(x) * x - 1.0, x
    )


def _torch(x):
    import torch

    @torch.compile(fullgraph=True)
    def f(x):
        return torch.cond(
            x.sum() > 0, lambda x: torch.sin(x) * 1.5, lambda x: torch.cos(x) * x - 1.0, (x,)
        )

    return lambda: f(x)


def _cupy(x):
    import cupy

    @cupy.fuse
    def positive(x):
        return cupy.sin(x) * 1.5

    @cupy.fuse
    def negative(x):
        return cupy.cos(x) * x - 1.0

    return lambda: positive(x) if x.sum() > 0 else negative(x)


def _warp(x):
    import warp

    from .warp_kernels import TILE, add_sum, cosine_scaled, is_positive, sine_scaled

    y, total = warp.empty_like(x), warp.zeros(1, dtype=x.dtype)
    condition = warp.zeros(1, dtype=warp.int32)
    blocks = ceil_div(x.size, int(TILE))

    def positive():
        warp.launch(sine_scaled, x.shape, [x, y])

    def negative():
        warp.launch(cosine_scaled, x.shape, [x, y])

    def run():
        total.zero_()
        warp.launch_tiled(add_sum, dim=[blocks], inputs=[x, total], block_dim=int(TILE))
        warp.launch(is_positive, 1, [total, condition])
        warp.capture_if(condition, positive, negative)
        return y

    return warp_graph(run)


COND = Row(
    name="cond",
    title="cond on the sign of a sum, a call and its result",
    inputs=_inputs,
    contestants={
        **written_once(_program),
        "torch": _torch,
        "cupy": _cupy,
        "warp graph": _warp,
    },
    limits=("launch",),
)

ROWS = (COND,)
