"""Sorting: a long vector, its order, and many rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.harness.own import written_once
from benchmarks.harness.row import Row

LONG, LONG_ON_HOST = 1 << 24, 1 << 20


def _row(name, title, inputs, program, torch=None):
    """`program` takes the module of a library, and an array; so does `torch`, where it differs."""

    def run_torch(x):
        import torch as library

        return partial(torch or program, library, x)

    def run_cupy(x):
        import cupy as library

        return partial(program, library, x)

    return Row(
        name=name,
        title=title,
        inputs=inputs,
        contestants={
            **written_once(lambda xp, loops: partial(program, xp)),
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
    _row("sort_f32", "sort 2**24 float32", _numbers, _sort, _sort_torch),
    _row(
        "sort_i64",
        "sort 2**20 int64",
        _distinct(np.int64, 1 << 20, 1 << 18),
        _sort,
        _sort_torch,
    ),
    _row(
        "argsort_i32",
        "argsort of 2**24 int32",
        _distinct(np.int32, LONG, LONG_ON_HOST),
        lambda xp, x: xp.argsort(x),
    ),
    _row("sort_rows", "sort 10,000 rows of 1000", _rows, _sort, _sort_torch),
    _row(
        "median_rows",
        "medians of 10,000 rows of 1000",
        _rows,
        lambda xp, x: xp.median(x, axis=1),
        lambda torch, x: torch.quantile(x, 0.5, dim=1),
    ),
)
