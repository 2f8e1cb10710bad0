"""What only the device shows: 16-bit arithmetic, accesses off alignment, clusters of blocks."""

import numpy as np
import pytest

import tracegraph
from lowering.fusion import row_profitability
from tests.fakes.foreign_arrays import View
from tests.helpers.compiled import on_device
from tests.helpers.parameters import in_turn
from tests.programs.half import ARITHMETIC, FUNCTIONS, HALVES, assert_arithmetic, assert_function

by_dtype = pytest.mark.parametrize("dtype", HALVES, ids=str)


@by_dtype
@pytest.mark.parametrize("ufunc", ARITHMETIC, ids=lambda ufunc: ufunc.__name__)
def test_arithmetic_of_16_bit_floats_has_numpys_bits(ufunc, dtype):
    f = tracegraph.jit(lambda x, y: ufunc(x, y), device="cuda")
    assert_arithmetic(ufunc, dtype, lambda x, y: f(on_device(x), on_device(y)))


@by_dtype
@pytest.mark.parametrize("ufunc", FUNCTIONS, ids=lambda ufunc: ufunc.__name__)
def test_functions_of_16_bit_floats_are_off_by_little_more_than_rounding(ufunc, dtype):
    f = tracegraph.jit(lambda x: ufunc(x), device="cuda")
    assert_function(ufunc, dtype, lambda x: f(on_device(x)))


PROGRAMS = {
    "map": (lambda x: x * 2 + 1, (1 << 20,)),
    "sum": (lambda x: np.sum(x, axis=-1), (1 << 21,)),
    "largest": (lambda x: np.max(x, axis=1), (1050, 1000)),
    "columns": (lambda x: np.max(x, axis=0), (1030, 1024)),
    "places": (lambda x: np.argmax(x, axis=0), (1030, 1024)),
    "few columns": (lambda x: np.max(x, axis=1), (350, 1000, 3)),
    "few places": (lambda x: np.argmin(x, axis=1), (350, 1000, 3)),
    "shift": (lambda x: x - np.max(x, axis=1, keepdims=True), (1100, 1000)),
    "transpose": (lambda x: x.T + 1, (2053, 2047)),
    "running": (lambda x: np.cumsum(x), (1 << 20,)),
}


DTYPES = ("int8", "int16", "float16", "float32", "float64")
CASES = [(n, d) for n in PROGRAMS for d in DTYPES if (n, d) != ("running", "float16")]  # inexact


STARTS = (0, 1, 2, 3, 5)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_results_do_not_depend_on_where_an_argument_begins(name, dtype):
    function, shape = PROGRAMS[name]
    size = int(np.prod(shape))
    numbers = np.random.default_rng(0).integers(-4, 5, size + max(STARTS)).astype(dtype)
    owner = on_device(numbers)
    f = tracegraph.jit(function, device="cuda")
    for start in STARTS:
        given = numbers[start : start + size].reshape(shape)
        found = np.asarray(f(View(owner, start, shape)))
        wide = given.astype(np.float64) if given.dtype.kind == "f" else given
        expected = np.asarray(function(wide)).astype(found.dtype)
        np.testing.assert_array_equal(found, expected, f"begins at element {start}")


def standardised(x):
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True))


LONG_ROWS = [
    (600, 20_000, "float32"),
    (600, 9_001, "float64"),
    (16, 100_003, "float64"),
    (70, 50_000, "float16"),
    (4, 300_000, "float32"),  # longer than the registers of a cluster hold
]


@pytest.mark.parametrize(("rows", "columns", "dtype"), LONG_ROWS)
def test_rows_of_several_blocks_are_what_rows_of_one_would_be(monkeypatch, rows, columns, dtype):
    monkeypatch.setattr(row_profitability, "MANY_ROWS", 1)
    given = np.random.default_rng(1).normal(2.0, 3.0, (rows, columns)).astype(dtype)
    f = tracegraph.jit(standardised, device="cuda")
    lowered = f.lower(given)
    assert "TG_CLUSTER(" in lowered.source
    found = np.asarray(f(on_device(given))).astype(np.float64)
    expected = standardised(given.astype(np.float64))
    tolerance = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * 5)
    np.testing.assert_array_equal(np.asarray(f(on_device(given))).astype(np.float64), found)


def test_clusters_run_in_the_bodies_of_loops_and_branches():
    def settled(x):
        def step(state):
            x, count = state
            changed = tracegraph.cond(count % 2 == 0, standardised, lambda x: x * 0.5 + 1.0, x)
            return changed, count + 1

        return tracegraph.while_loop(
            lambda state: (np.max(state[0]) < 1e6) & (state[1] < 5), step, (x, 0)
        )

    given = np.random.default_rng(2).normal(size=(600, 20_000)).astype(np.float32)
    found, count = tracegraph.jit(settled, device="cuda")(on_device(given))
    expected = given.astype(np.float64)
    for step in range(5):
        expected = expected * 0.5 + 1.0 if step % 2 else standardised(expected)
    assert int(count) == 5
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("start", "row"), in_turn([0, 1, 3], [(4100, "float32"), (1001, "float64")])
)
def test_rows_that_are_fetched_ahead_are_what_they_would_be(start, row):
    columns, dtype = row
    shape = ((70 << 20) // (columns * np.dtype(dtype).itemsize), columns)
    size = shape[0] * columns
    numbers = np.random.default_rng(3).normal(2.0, 3.0, size + start).astype(dtype)
    given = numbers[start:].reshape(shape)
    f = tracegraph.jit(standardised, device="cuda")
    assert "ahead, " in f.lower(given).source
    found = np.asarray(f(View(on_device(numbers), start, shape)))
    tolerance = {"float32": 2e-5, "float64": 5e-13}[dtype]
    expected = standardised(given.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
