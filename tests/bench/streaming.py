"""Work that is limited by the memory's bandwidth: large arrays read once and written once."""

from __future__ import annotations

import numpy as np

from .own import eager, jitted
from .row import GIGABYTES, Row, traffic

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


def _compiled_jax(function):
    """`function` takes jax.numpy and an array."""

    def prepare(x):
        import jax

        f = jax.jit(lambda x: function(jax.numpy, x))
        return lambda: f(x)

    return prepare


def _compiled_torch(function):
    """`function` takes torch and a tensor."""

    def prepare(x):
        import torch

        f = torch.compile(lambda x: function(torch, x))
        return lambda: f(x)

    return prepare


def _row(name, title, inputs, ours, *, jax, torch, cupy, numpy=None):
    return Row(
        name=name,
        title=title,
        inputs=inputs,
        contestants={
            "tracegraph": jitted(ours),
            "numpy": eager(numpy or ours),
            "jax": _compiled_jax(jax),
            "torch": _compiled_torch(torch),
            "cupy": cupy,
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


SINE = _row(
    "sine",
    "sin(a)*1.5 + a*a",
    _vector("float16"),
    lambda a: _sine(np, a),
    jax=_sine,
    torch=_sine,
    cupy=_sine_cupy,
)


def _squares(xp, a):
    return xp.sum(a * a)


def _squares_cupy(a):
    import cupy

    f = cupy.ReductionKernel("T a", "T y", "a * a", "a + b", "y = a", "0", "bench_squares")
    return lambda: f(a)


SUM_OF_SQUARES = _row(
    "sum",
    "sum(a*a)",
    _vector(),
    lambda a: _squares(np, a),
    jax=_squares,
    torch=_squares,
    cupy=_squares_cupy,
)


def _softmax_ours(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


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


SOFTMAX = _row(
    "softmax",
    "softmax of each row",
    _matrix(1 << 15, 1 << 12, 4096),
    _softmax_ours,
    jax=_softmax_jax,
    torch=lambda torch, x: torch.softmax(x, -1),
    cupy=_softmax_cupy,
)

COLUMN_SUMS = _row(
    "column_sums",
    "sums of the columns of a matrix",
    _matrix(1 << 15, 1 << 12, 1 << 12),
    lambda x: np.sum(x, axis=0),
    jax=lambda jnp, x: jnp.sum(x, axis=0),
    torch=lambda torch, x: torch.sum(x, 0),
    cupy=lambda x: lambda: x.sum(axis=0),
)


def _transpose_cupy(x):
    import cupy

    def run():
        y = cupy.ascontiguousarray(x.T)
        y += 1
        return y

    return run


TRANSPOSE = _row(
    "transpose",
    "x.T + 1, row by row in memory",
    _matrix(1 << 14, 1 << 12, 1 << 13),
    lambda x: x.T + 1,
    numpy=lambda x: np.add(x.T, 1, order="C"),
    jax=lambda jnp, x: x.T + 1,
    torch=lambda torch, x: (x.T + 1).contiguous(),
    cupy=_transpose_cupy,
)


def _cumsum_inputs(draw):
    return [draw.uniform(draw.size(1 << 24, 1 << 22), draw.dtype("float32", "float64"))]


CUMSUM = _row(
    "cumsum",
    "cumulative sum",
    _cumsum_inputs,
    np.cumsum,
    jax=lambda jnp, x: jnp.cumsum(x),
    torch=lambda torch, x: torch.cumsum(x, 0),
    cupy=lambda x: lambda: x.cumsum(),
)

ROWS = (SINE, SUM_OF_SQUARES, SOFTMAX, COLUMN_SUMS, TRANSPOSE, CUMSUM)
