"""A while_loop inside a while_loop, with bounds that only a call knows."""

from __future__ import annotations

from benchmarks.harness.capture import warp_graph
from benchmarks.harness.own import eager, written_once
from benchmarks.harness.row import PER_ITERATION, Row


def _inputs(draw):
    x = draw.uniform(draw.size(1024), draw.dtype("float32", "float64"))
    return x, draw.size(30), draw.size(30)


FACTOR, SUMMAND = 0.99, 0.5


def _step(x):
    return x * FACTOR + SUMMAND


def _program(xp, loops):
    def nested(x, outer, inner):
        def rounds(state):
            x, i = state
            x, _ = loops.while_loop(
                lambda c: c[1] < inner, lambda c: (_step(c[0]), c[1] + 1), (x, 0)
            )
            return x, i + 1

        return loops.while_loop(lambda c: c[1] < outer, rounds, (x, 0))[0]

    return nested


def _numpy(x, outer, inner):
    for _ in range(outer):
        for _ in range(inner):
            x = _step(x)
    return x


def _torch(x, outer, inner):
    import torch
    from torch._higher_order_ops import while_loop

    def rounds(x, i, j, outer, inner):
        x, j, _ = while_loop(
            lambda x, j, inner: j < inner,
            lambda x, j, inner: (_step(x), j + 1, inner.clone()),
            (x, torch.zeros_like(j), inner),
        )
        return x, i + 1, j, outer.clone(), inner.clone()

    @torch.compile(fullgraph=True)
    def f(x, zero, outer, inner):
        state = (x, zero, zero.clone(), outer, inner)
        return while_loop(lambda x, i, j, outer, inner: i < outer, rounds, state)

    counts = [torch.tensor(n, device=x.device) for n in (0, outer, inner)]
    return lambda: f(x, *counts)[0]


def _cupy(x, outer, inner):
    import cupy

    step = cupy.ElementwiseKernel("T x", "T y", "y = x * (T)0.99 + (T)0.5", "bench_step")

    def run():
        y = x.copy()
        for _ in range(outer):
            for _ in range(inner):
                step(y, y)
        return y

    return run


def _warp(x, outer, inner):
    import warp

    from .warp_kernels import count, relax, start

    y = warp.empty_like(x)
    (i, rounds), (j, unfinished) = (
        [warp.zeros(1, dtype=warp.int32) for _ in range(2)] for _ in range(2)
    )

    def step():
        warp.launch(relax, y.shape, [y])
        warp.launch(count, 1, [j, inner, unfinished])

    def one_round():
        warp.launch(start, 1, [j, inner, unfinished])
        warp.capture_while(unfinished, step)
        warp.launch(count, 1, [i, outer, rounds])

    def run():
        warp.copy(y, x)
        warp.launch(start, 1, [i, outer, rounds])
        warp.capture_while(rounds, one_round)
        return y

    return warp_graph(run)


NESTED = Row(
    name="nested",
    title="while_loop in while_loop, 30 × 30 iterations",
    inputs=_inputs,
    contestants={
        **written_once(_program),
        "numpy": eager(_numpy),  # counting in carries would take a fifth longer
        "torch": _torch,
        "cupy": _cupy,
        "warp graph": _warp,
    },
    limits=("nested while nodes",),
    unit=PER_ITERATION,
    work=lambda inputs, results: inputs[1] * inputs[2],
)

ROWS = (NESTED,)
