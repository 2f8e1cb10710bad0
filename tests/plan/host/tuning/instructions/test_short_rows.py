"""Short rows on the host: calls by column, folds on transposed copies, running folds by step."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import Temporary
from tests.cases.host_nests import block_length, programs_of, steps_of


def names_of(function, *arguments):
    return [getattr(made.function, "__name__", "") for made in steps_of(function, *arguments)]


def points(count, columns=3, dtype=np.float32):
    return np.random.default_rng(count).random((count, columns)).astype(dtype)


def agrees(function, *arguments):
    found = tracegraph.jit(function, device="host")(*arguments)
    wanted = function(*arguments)
    tolerance = 1e-2 if wanted.dtype == np.float16 else 1e-5
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance)


ROW_BY_ROW = {
    "less a row": lambda x: x - x[0],
    "times a column": lambda x: x * x[:, :1],
    "outer": lambda x: x[:, :1] * x[0],
    "chosen": lambda x: np.where(x[:, :1] > x[0], x, x[0]),
    "turned": lambda x: (x.T + x[:, 0]).T,
    "folded along columns": lambda x: x.max(axis=0),
    "centred": lambda x: x - x.mean(axis=0),
    "folded along rows": lambda x: np.sqrt((x * x).sum(axis=1)),
    "running along rows": lambda x: np.cumsum(x, axis=1),
    "running along columns": lambda x: np.cumprod(x.T, axis=0),
}


@pytest.mark.parametrize(
    ("count", "dtype"),
    [
        *((count, np.float32) for count in (1, 500, 6145, 100_000)),  # in blocks, too
        *((6145, dtype) for dtype in (np.float64, np.float16, np.int32)),
    ],
)
@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_results_are_those_of_numpy(name, count, dtype):
    x = points(count, dtype=dtype) if dtype != np.int32 else (9 * points(count)).astype(dtype)
    agrees(ROW_BY_ROW[name], x)


@pytest.mark.parametrize("name", ["less a row", "times a column", "outer", "chosen"])
def test_many_short_rows_are_done_by_columns(name):
    assert "each_column" in names_of(ROW_BY_ROW[name], points(20_000))
    assert "each_column" not in names_of(ROW_BY_ROW[name], points(1000))
    assert "each_column" not in names_of(ROW_BY_ROW[name], points(1000, columns=200))


def test_ranges_of_memory_in_one_order_are_one_call():
    assert names_of(lambda x: x * 2.0 + x, points(20_000)) == ["multiply", "add"]


def test_a_fold_along_long_columns_is_done_by_columns():
    fold = ROW_BY_ROW["folded along columns"]
    assert "each_column" in names_of(fold, points(20_000))
    assert "each_column" not in names_of(fold, points(20_000).T.copy())
    assert "each_column" not in names_of(fold, points(500))


def test_a_fold_along_columns_of_some_length_reads_a_copy_in_which_each_is_a_range():
    def copies(count, columns):
        steps = steps_of(lambda x: x.max(axis=0), points(count, columns=columns))
        return [made.output.order for made in steps if made.function is numpy_calls.store]

    assert copies(500, 3) == copies(3500, 14) == [(1, 0)]
    assert copies(50, 3) == copies(20_000, 3) == copies(500, 20) == []


def test_a_fold_along_short_rows_reads_a_copy_by_columns():
    """The elements of one result are then far from each other, and results are neighbours."""

    def copies(count):
        steps = steps_of(lambda x: x.sum(axis=1), points(count))
        return [made.output.order for made in steps if made.function is numpy_calls.store]

    assert copies(5000) == [(1, 0)]
    assert copies(60) == []


def test_a_running_fold_of_many_rows_takes_one_step_of_all_at_a_time():
    assert "step_by_step" in names_of(lambda x: np.cumsum(x, axis=0), points(40, 1000))
    assert "step_by_step" in names_of(lambda x: np.cumsum(x, axis=1), points(1000, 10))
    assert "step_by_step" not in names_of(lambda x: np.cumsum(x, axis=1), points(1000, 40))
    assert "step_by_step" not in names_of(lambda x: np.cumsum(x, axis=0), points(1000, 40))


def test_running_folds_are_the_same_to_the_bit():
    x = points(2000, 7)
    found = tracegraph.jit(lambda x: np.cumsum(x, axis=1), device="host")(x)
    np.testing.assert_array_equal(np.asarray(found), np.cumsum(x, axis=1))


def test_large_arrays_are_still_run_in_blocks():
    """Every column of a block, then the next block."""
    x = points(100_000)
    (found,) = programs_of(lambda x: np.tanh(x - x[0]) * x[0], x)
    assert found.axis == 0
    assert block_length(found) < 100_000
    each = found.instructions[found.invariant :]
    assert any(isinstance(made.output, Temporary) for made in each) or len(each) > 1
