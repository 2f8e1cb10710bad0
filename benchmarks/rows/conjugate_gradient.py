"""Conjugate gradients on a dense matrix, for as long as the residual is too large.

Hestenes and Stiefel, "Methods of Conjugate Gradients for Solving Linear Systems", 1952.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.harness.agreement import relative_difference
from benchmarks.harness.capture import warp_graph
from benchmarks.harness.own import written_once
from benchmarks.harness.row import PER_ITERATION, Row, steps_taken

MOST_STEPS = 1000
RESIDUAL = 1e-4


def _inputs(draw):
    n, dtype = draw.size(1024), draw.dtype("float32", "float64")
    factor = draw.rng.standard_normal((n, n)) / np.sqrt(n)
    matrix = factor @ factor.T + 0.01 * np.eye(n)  # eigenvalues from 0.01 to about 4
    b = draw.rng.standard_normal(n)
    return matrix.astype(dtype), b.astype(dtype), float(RESIDUAL**2 * np.sum(b * b))


def _start(b):
    return b * 0, b, b, (b * b).sum(), 0


def _advance(a, state):
    x, r, p, rr, step = state
    ap = a @ p
    alpha = rr / (p * ap).sum()
    x = x + alpha * p
    r = r - alpha * ap
    rr_next = (r * r).sum()
    return x, r, r + (rr_next / rr) * p, rr_next, step + 1


def _unfinished(limit, state):
    return (state[3] > limit) & (state[4] < MOST_STEPS)


def _solution(state):
    return state[0], state[4]


def _program(xp, loops):
    def solve(a, b, limit):
        unfinished, advance = partial(_unfinished, limit), partial(_advance, a)
        return _solution(loops.while_loop(unfinished, advance, _start(b)))

    return solve


def _torch(a, b, limit):
    import torch
    from torch._higher_order_ops import while_loop

    @torch.compile(fullgraph=True)
    def f(a, b, zero):
        start = (*_start(b)[:4], zero)
        # Carries may not be the same tensor.
        start = tuple(value.clone() for value in start)
        return _solution(
            while_loop(lambda *s: _unfinished(limit, s), lambda *s: _advance(a, s), start)
        )

    zero = torch.tensor(0, device=a.device)
    return lambda: f(a, b, zero)


def _cupy(a, b, limit):
    import cupy

    add_scaled = cupy.ElementwiseKernel(
        "T x, T alpha, T p", "T y", "y = x + alpha * p", "bench_axpy"
    )

    def run():
        x, r, p = cupy.zeros_like(b), b.copy(), b.copy()
        rr, step = r @ r, 0
        while rr > limit and step < MOST_STEPS:
            ap = a @ p
            alpha = rr / (p @ ap)
            add_scaled(x, alpha, p, x)
            add_scaled(r, -alpha, ap, r)
            rr, old = r @ r, rr
            add_scaled(r, rr / old, p, p)
            step += 1
        return x, cupy.asarray(step)

    return run


def _warp(a, b, limit):
    import warp
    from warp.optim.linear import cg

    x = warp.empty_like(b)
    settings = {"atol": np.sqrt(limit), "tol": 0.0, "maxiter": MOST_STEPS, "check_every": 0}
    solve = cg(a, b, x, **settings, run=False)

    def run():
        x.zero_()
        steps, _, _ = solve()
        return x, steps

    return warp_graph(run)


def _agrees(found, wanted):
    """Rounding may end the iteration some steps earlier or later, within the residual allowed."""
    difference = relative_difference(found[0], wanted[0])
    steps, expected = found[1].item(), wanted[1].item()
    if difference > 100 * RESIDUAL:
        return f"the solution differs by {difference:.1e}"
    if abs(steps - expected) > 0.1 * expected:
        return f"took {steps} steps, not about {expected}"
    return None


CG = Row(
    name="cg",
    title="conjugate gradients, dense matrix, while_loop on the residual",
    inputs=_inputs,
    contestants={
        **written_once(_program),
        "torch": _torch,
        "cupy": _cupy,
        "warp graph": _warp,
    },
    unit=PER_ITERATION,
    work=steps_taken,
    agrees=_agrees,
)

ROWS = (CG,)
