"""Sorting: a long vector, its order, and many rows."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.own import eager, jitted
from benchmarks.harness.row import Row

from .streaming import compiled_jax

LONG, LONG_ON_HOST = 1 << 24, 1 << 20


def _row(name, title, inputs, ours, jax, torch, cupy):
    """`jax`, `torch` and `cupy` take the library's module, and an array."""

    def run_torch(x):
        import torch as library

        return lambda: torch(library, x)

    def run_cupy(x):
        import cupy as library

        return lambda: cupy(library, x)

    return Row(
        name=name,
        title=title,
        inputs=inputs,
        contestants={
            "tracegraph": jitted(ours),
            "numpy": eager(ours),
            "jax": compiled_jax(jax),
            "torch": run_torch,
            "cupy": run_cupy,
        },
    )


def _sort(xp, x):
    return xp.sort(x)


def _sort_torch(torch, x):
    return torch.sort(x, dim=-1).values


def _numbers(draw):
    return [draw.uniform(draw.size(LONG, LONG_ON_HOST), np.dtype(np.float32), -1.0, 1.0)]


def _distinct(dtype, count, count_on_host):
    """Distinct integers: every library finds the same order of them."""

    def inputs(draw):
        found = draw.rng.permutation(draw.size(count, count_on_host)).astype(dtype)
        return [found * dtype(0x9E3779B1 if dtype is np.int64 else 1)]

    return inputs


def _rows(draw):
    shape = draw.size(10_000, 1000), draw.size(1000)
    return [draw.uniform(shape, np.dtype(np.float32))]


ROWS = (
    _row("sort_f32", "sort 2**24 float32", _numbers, np.sort, _sort, _sort_torch, _sort),
    _row(
        "sort_i64",
        "sort 2**20 int64",
        _distinct(np.int64, 1 << 20, 1 << 18),
        np.sort,
        _sort,
        _sort_torch,
        _sort,
    ),
    _row(
        "argsort_i32",
        "argsort of 2**24 int32",
        _distinct(np.int32, LONG, LONG_ON_HOST),
        np.argsort,
        lambda jnp, x: jnp.argsort(x),
        lambda torch, x: torch.argsort(x),
        lambda cupy, x: cupy.argsort(x),
    ),
    _row("sort_rows", "sort 10,000 rows of 1000", _rows, np.sort, _sort, _sort_torch, _sort),
    _row(
        "median_rows",
        "medians of 10,000 rows of 1000",
        _rows,
        lambda x: np.median(x, axis=1),
        lambda jnp, x: jnp.median(x, axis=1),
        lambda torch, x: torch.quantile(x, 0.5, dim=1),
        lambda cupy, x: cupy.median(x, axis=1),
    ),
)
