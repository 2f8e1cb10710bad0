"""fori_loop with a trip count that is known when it is compiled."""

from __future__ import annotations

import tracegraph

from .capture import cupy_graph, torch_graph, warp_graph
from .own import eager, jitted
from .row import PER_ITERATION, Row

STEPS = 1000


def _inputs_of(size):
    return lambda draw: [draw.uniform(draw.size(size), draw.dtype("float32", "float64"))]


def _step(x):
    return x * 0.99 + 0.5


def _ours(x):
    return tracegraph.fori_loop(0, STEPS, lambda i, x: _step(x), x)


def _numpy(x):
    for _ in range(STEPS):
        x = _step(x)
    return x


def _jax(x):
    import jax

    f = jax.jit(lambda x: jax.lax.fori_loop(0, STEPS, lambda i, x: _step(x), x))
    return lambda: f(x)


def _torch(x):
    import torch

    step = torch.compile(_step)

    def run():
        y = x
        for _ in range(STEPS):
            y = step(y)
        return y

    return run


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
            "tracegraph": jitted(_ours),
            "numpy": eager(_numpy),
            "jax": _jax,
            "torch": _torch,
            "torch graph": lambda x: torch_graph(_torch(x)),
            "cupy": _cupy,
            "cupy graph": lambda x: cupy_graph(_cupy(x)),
            "warp graph": _warp,
        },
        unit=PER_ITERATION,
        work=lambda inputs, results: STEPS,
    )
    for label, size in (("1ki", 1 << 10), ("1mi", 1 << 20))
)

ROWS = (FORI_1KI, FORI_1MI)
