"""Work that is limited by the memory's bandwidth: large arrays read once and written once."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.harness.own import compiled_jax, eager, jitted
from benchmarks.harness.row import GIGABYTES, Row, traffic
from lowering.plan.nests.rounding import ceil_div

LARGE, LARGE_ON_HOST = 1 << 27, 1 << 24


def _vector(*others):
    def inputs(draw):
        dtype = draw.dtype("float32", "float64", *others)
        return [draw.uniform(draw.size(LARGE, LARGE_ON_HOST), dtype)]

    return inputs


def _matrix(rows, rows_on_host, columns):
    def inputs(draw):
        shape = draw.size(rows, rows_on_host), draw.size(columns)
        return [draw.uniform(shape, draw.dtype("float32", "float64"))]

    return inputs


def _compiled_torch(function):
    """`function` takes torch and a tensor."""

    def prepare(x):
        import torch

        f = torch.compile(lambda x: function(torch, x))
        return lambda: f(x)

    return prepare


def _row(name, title, inputs, program, *, cupy, warp, **others):
    """`program` takes an array namespace and an array; so do those of `others`, by library."""
    every = dict.fromkeys(("tracegraph", "numpy", "jax", "torch"), program) | others
    return Row(
        name=name,
        title=title,
        inputs=inputs,
        contestants={
            "tracegraph": jitted(partial(every["tracegraph"], np)),
            "numpy": eager(partial(every["numpy"], np)),
            "jax": compiled_jax(lambda xp, loops: partial(every["jax"], xp)),
            "torch": _compiled_torch(every["torch"]),
            "cupy": cupy,
            "warp": warp,
        },
        unit=GIGABYTES,
        work=traffic,
        limits=("copy",),
    )


def _sine(xp, a):
    return xp.sin(a) * 1.5 + a * a


def _sine_cupy(a):
    import cupy

    @cupy.fuse
    def f(a):
        return cupy.sin(a) * 1.5 + a * a

    return lambda: f(a)


def _sine_warp(a):
    import warp

    from .warp_kernels import sine_and_square

    y = warp.empty_like(a)

    def run():
        warp.launch(sine_and_square, a.shape, [a, y])
        return y

    return run


SINE = _row(
    "sine",
    "sin(a)*1.5 + a*a",
    _vector("float16"),
    _sine,
    cupy=_sine_cupy,
    warp=_sine_warp,
)


def _squares(xp, a):
    return xp.sum(a * a)


def _squares_cupy(a):
    import cupy

    f = cupy.ReductionKernel("T a", "T y", "a * a", "a + b", "y = a", "0", "bench_squares")
    return lambda: f(a)


def _squares_warp(a):
    import warp

    from .warp_kernels import LARGE_TILE, add_squares

    total = warp.empty(1, dtype=a.dtype)
    blocks = ceil_div(a.size, int(LARGE_TILE))

    def run():
        total.zero_()
        warp.launch_tiled(add_squares, dim=[blocks], inputs=[a, total], block_dim=256)
        return total

    return run


SUM_OF_SQUARES = _row(
    "sum",
    "sum(a*a)",
    _vector(),
    _squares,
    cupy=_squares_cupy,
    warp=_squares_warp,
)


def _softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _softmax_jax(jnp, x):
    import jax

    return jax.nn.softmax(x, axis=-1)


def _softmax_cupy(x):
    import cupy

    @cupy.fuse
    def shifted(x, m):
        return cupy.exp(x - m)

    def run():
        e = shifted(x, x.max(axis=-1, keepdims=True))
        e /= e.sum(axis=-1, keepdims=True)
        return e

    return run


def _softmax_warp(x):
    import warp

    from .warp_kernels import softmax_of

    y, softmax = warp.empty_like(x), softmax_of(x.shape[1])

    def run():
        warp.launch_tiled(softmax, dim=[x.shape[0]], inputs=[x, y], block_dim=256)
        return y

    return run


SOFTMAX = _row(
    "softmax",
    "softmax of each row",
    _matrix(1 << 15, 1 << 12, 4096),
    _softmax,
    jax=_softmax_jax,
    torch=lambda torch, x: torch.softmax(x, -1),
    cupy=_softmax_cupy,
    warp=_softmax_warp,
)


def _column_sums_warp(x):
    import warp

    from .warp_kernels import ROWS, add_rows

    rows, columns = x.shape
    sums = warp.empty(columns, dtype=x.dtype)

    def run():
        sums.zero_()
        warp.launch(add_rows, (ceil_div(rows, int(ROWS)), columns), [x, sums])
        return sums

    return run


COLUMN_SUMS = _row(
    "column_sums",
    "sums of the columns of a matrix",
    _matrix(1 << 15, 1 << 12, 1 << 12),
    lambda xp, x: xp.sum(x, axis=0),
    cupy=lambda x: lambda: x.sum(axis=0),
    warp=_column_sums_warp,
)


def _transpose_cupy(x):
    import cupy

    def run():
        y = cupy.ascontiguousarray(x.T)
        y += 1
        return y

    return run


def _transpose_warp(x):
    import warp

    from .warp_kernels import SIDE, transpose_plus_one

    tiles = [ceil_div(n, int(SIDE)) for n in x.shape]
    y = warp.empty(x.shape[::-1], dtype=x.dtype)

    def run():
        warp.launch_tiled(transpose_plus_one, dim=tiles, inputs=[x, y], block_dim=256)
        return y

    return run


TRANSPOSE = _row(
    "transpose",
    "x.T + 1, row by row in memory",
    _matrix(1 << 14, 1 << 12, 1 << 13),
    lambda xp, x: x.T + 1,
    numpy=lambda np, x: np.add(x.T, 1, order="C"),
    torch=lambda torch, x: (x.T + 1).contiguous(),
    cupy=_transpose_cupy,
    warp=_transpose_warp,
)


def _cumsum_inputs(draw):
    return [draw.uniform(draw.size(1 << 24, 1 << 22), draw.dtype("float32", "float64"))]


def _cumsum_warp(x):
    import warp

    y = warp.empty_like(x)

    def run():
        warp.utils.array_scan(x, y, inclusive=True)
        return y

    return run


CUMSUM = _row(
    "cumsum",
    "cumulative sum",
    _cumsum_inputs,
    lambda xp, x: xp.cumsum(x, axis=0),
    cupy=lambda x: lambda: x.cumsum(),
    warp=_cumsum_warp,
)

ROWS = (SINE, SUM_OF_SQUARES, SOFTMAX, COLUMN_SUMS, TRANSPOSE, CUMSUM)
