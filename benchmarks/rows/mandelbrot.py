"""Mandelbrot's set: while_loop for as long as any point has not escaped."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.harness.capture import warp_graph
from benchmarks.harness.own import written_once
from benchmarks.harness.row import PER_ITERATION, Row, steps_taken

MOST_STEPS = 200
POINTS_ON_EDGE = 0.01
"""The part of all points that may escape some steps earlier or later by rounding."""


def _inputs(draw):
    rows, columns = draw.size(1024, 256), draw.size(1024, 256)
    dtype = draw.dtype("float32", "float64")
    x, y = np.meshgrid(np.linspace(-2, 0.6, columns), np.linspace(-1.2, 1.2, rows))
    return x.astype(dtype), y.astype(dtype)


def _advance(where, x, y, state):
    re, im, counts, step = state
    inside = re * re + im * im <= 4
    re, im = (
        where(inside, re * re - im * im + x, re),
        where(inside, 2 * re * im + y, im),
    )
    return re, im, counts + inside, step + 1


def _unfinished(state):
    re, im, _, step = state
    return (re * re + im * im <= 4).any() & (step < MOST_STEPS)


def _counts(state):
    return state[2], state[3]


def _program(xp, loops):
    def counts(x, y):
        start = (x * 0, y * 0, xp.zeros_like(x, dtype=xp.int32), 0)
        return _counts(loops.while_loop(_unfinished, partial(_advance, xp.where, x, y), start))

    return counts


def _torch(x, y):
    import torch
    from torch._higher_order_ops import while_loop

    @torch.compile(fullgraph=True)
    def f(x, y, zero):
        start = (x * 0, y * 0, torch.zeros_like(x, dtype=torch.int32), zero)
        return _counts(
            while_loop(lambda *s: _unfinished(s), lambda *s: _advance(torch.where, x, y, s), start)
        )

    zero = torch.tensor(0, device=x.device)
    return lambda: f(x, y, zero)


def _cupy(x, y):
    import cupy

    advance = cupy.ElementwiseKernel(
        "T x, T y",
        "T re, T im, int32 count, bool inside",
        """
        if (re * re + im * im <= (T)4) {
          T next = re * re - im * im + x;
          im = (T)2 * re * im + y;
          re = next;
          ++count;
        }
        inside = re * re + im * im <= (T)4;
        """,
        "bench_mandelbrot",
    )

    def run():
        re, im = cupy.zeros_like(x), cupy.zeros_like(y)
        counts, inside = cupy.zeros(x.shape, cupy.int32), cupy.ones(x.shape, bool)
        step = 0
        while step < MOST_STEPS and inside.any():
            advance(x, y, re, im, counts, inside)
            step += 1
        return counts, cupy.asarray(step)

    return run


def _warp(x, y):
    import warp

    from .warp_kernels import any_inside, escape

    re, im = warp.empty_like(x), warp.empty_like(y)
    counts = warp.empty(x.shape, dtype=warp.int32)
    inside, step, condition = (warp.zeros(1, dtype=warp.int32) for _ in range(3))

    def advance():
        warp.launch(escape, x.shape, [x, y, re, im, counts, inside])
        warp.launch(any_inside, 1, [inside, step, MOST_STEPS, condition])

    def run():
        for array in (re, im, counts, step):
            array.zero_()
        condition.fill_(1)  # all points begin at 0
        warp.capture_while(condition, advance)
        return counts, step

    return warp_graph(run)


def _agrees(found, wanted):
    if found[0].shape != wanted[0].shape:
        return f"has shape {found[0].shape}, not {wanted[0].shape}"
    if found[1].item() != wanted[1].item():
        return f"took {found[1].item()} steps, not {wanted[1].item()}"
    differing = np.mean(found[0] != wanted[0])
    if differing > POINTS_ON_EDGE:
        return f"counts differ at {differing:.1%} of all points"
    return None


MANDELBROT = Row(
    name="mandelbrot",
    title=f"Mandelbrot's set, while_loop with any, {MOST_STEPS} iterations",
    inputs=_inputs,
    contestants={
        **written_once(_program),
        "torch": _torch,
        "cupy": _cupy,
        "warp graph": _warp,
    },
    limits=("mandelbrot in one kernel",),
    unit=PER_ITERATION,
    work=steps_taken,
    agrees=_agrees,
)

ROWS = (MANDELBROT,)
