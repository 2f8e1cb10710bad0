"""Thread coarsening: which sums over columns have several columns in one thread."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from lowering.codegen.nest_kinds import canonical
from lowering.codegen.rows.column_runs import coarsened
from lowering.codegen.rows.row_geometry import row_geometry
from lowering.plan.nests.kernel import Accumulator, ReduceNest, RowNest
from tests.cases.kernels.by_hand import axes, buffer, load, store
from tests.cases.kernels.folds import accumulated, reduction
from tracegraph.ir.combiners import ADD, MINIMUM
from tracegraph.ir.scalar import const
from tracegraph.ir.scalar_values import apply
from tracegraph.ops.arithmetic import add, multiply

F32 = np.dtype(np.float32)


def sums_of(shape: tuple[int, ...], dtype: str = "float32") -> RowNest:
    """Sums over the axis before the last, as they are written."""
    *outer, steps, columns = shape
    x, out = buffer(dtype, *shape), buffer(dtype, *outer, columns)
    *kept, column, step = axes(*outer, columns, steps)
    value = Accumulator(ADD, load(x, *kept, step, column))
    result = store(out, (*kept, column), accumulated(0, dtype))
    nest = coarsened(canonical(ReduceNest((*outer, columns), (steps,), (value,), (result,))))
    assert isinstance(nest, RowNest)
    return nest


@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        ((100, 100, 3), 3),
        ((100, 100, 2), 2),
        ((8, 32, 3), 3),
        ((7, 100, 3), 1),  # few rows
        ((100, 31, 3), 1),  # short ones
        ((100, 100, 4), 1),
        ((10_000, 3), 1),  # one row
    ],
)
def test_a_thread_folds_all_of_few_columns(shape: tuple[int, ...], columns: int) -> None:
    nest = sums_of(shape)
    assert len(nest.passes[0].accumulators) == len(nest.stores) == columns
    assert nest.space == (*shape[:-2], shape[-1] // columns)


def test_columns_that_something_else_reads_across_stay_apart() -> None:
    x, out = buffer("float32", 64, 64, 3), buffer("float32", 64, 3)
    row, column, step = axes(64, 3, 64)
    along = Accumulator(ADD, load(x, row, step, column))
    across = Accumulator(ADD, load(x, step, row, column))
    results = tuple([store(out, (row, column), accumulated(n, "float32")) for n in (0, 1)])
    nest = canonical(ReduceNest((64, 3), (64,), (across, along), results))
    assert coarsened(nest) is nest


def test_a_thread_folds_a_vector_of_narrow_columns() -> None:
    assert len(sums_of((8192, 8192), "float16").passes[0].accumulators) > 1
    assert len(sums_of((8192, 8192)).passes[0].accumulators) == 1


def test_each_column_has_the_place_of_its_own_extreme() -> None:
    x, out = buffer("int16", 8192, 8192), buffer("int64", 8192)
    nest = coarsened(canonical(reduction(x, out, (1,), MINIMUM, arg=True)))
    assert [store.value for store in nest.stores] == [
        accumulated(number, "int64") for number in range(len(nest.stores))
    ]
    assert len(nest.stores) > 1


@pytest.mark.parametrize(
    ("rows", "summed", "together"),
    [(1 << 19, 16, 4), (1 << 18, 16, 2), (1 << 16, 16, 1), (1 << 19, 32, 2), (6 << 17, 64, 1)],
)
def test_rows_that_read_the_same_small_arrays_share_a_thread(
    rows: int, summed: int, together: int
) -> None:
    x, y, out = (buffer("float32", *shape) for shape in ((rows, summed), (64, summed), (rows,)))
    row, step = axes(rows, 64)
    terms = [
        apply(multiply, (load(x, row, const(k)), load(y, step, const(k))), F32, {})
        for k in range(summed)
    ]
    value = reduce(lambda a, b: apply(add, (a, b), F32, {}), terms)
    results = (store(out, (row,), accumulated(0, "float32")),)
    nest = coarsened(canonical(ReduceNest((rows,), (64,), (Accumulator(MINIMUM, value),), results)))
    assert isinstance(nest, RowNest)
    assert nest.space == (rows // together,)
    geometry = row_geometry(nest, 256)
    assert (geometry.lanes, geometry.adjacent) == (1, False)


def test_few_rows_that_read_the_same_large_array_share_a_thread() -> None:
    x, y, out = (buffer("float32", *shape) for shape in ((1 << 20,), (24,), (24,)))
    row, step = axes(24, 1 << 20)
    value = Accumulator(MINIMUM, apply(add, (load(x, step), load(y, row)), F32, {}))
    results = (store(out, (row,), accumulated(0, "float32")),)
    nest = coarsened(canonical(ReduceNest((24,), (1 << 20,), (value,), results)))
    assert isinstance(nest, RowNest)
    assert nest.space == (3,)
    assert len(nest.passes[0].accumulators) == 8
