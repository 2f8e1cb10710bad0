"""Selection on a device: what a stable sort finds, to the bit, for every dtype and kernel."""

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.sorting import DTYPES, in_order, values
from tracegraph.arrays.eager import apply
from tracegraph.ops.largest import largest
from tracegraph.ops.ranked import ranked

CASES = (
    *(((1,), 1), ((40,), 40), ((128,), 5), ((3, 5, 300), 7), ((2, 1500), 256), ((3000,), 512)),
    *(((2, 9000), 10), ((20_000,), 3), ((2, 13_001), 50), ((700, 33), 4), ((1000, 5000), 10)),
    *(((1 << 20,), 100), ((0, 9), 3), ((5, 3), 0), ((3, 300_001), 512)),
)
"""Shapes and how many are selected of each row."""


def all_of_them(arrays):
    found = []
    for x, (_, count) in zip(arrays, CASES, strict=True):
        places = apply(largest, x, count=count)
        found.append((tnp.take_along_axis(x, places, -1), places))
    return found


def check(found, arrays, counts):
    for (best, places), x, count in zip(found, arrays, counts, strict=True):
        wanted = np.asarray(tnp.argsort(x, descending=True))[..., :count]
        np.testing.assert_array_equal(places, wanted, err_msg=f"{count} of {x.shape}")
        assert np.asarray(best).tobytes() == np.take_along_axis(x, wanted, -1).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_largest_are_those_of_a_sort(dtype):
    arrays = [values(dtype, shape, seed=k) for k, (shape, _) in enumerate(CASES)]
    program = tracegraph.jit(all_of_them, device="cuda")
    for _ in range(2):
        check(program(arrays), arrays, [count for _, count in CASES])


@pytest.mark.parametrize("count", [1, 20, 300])
def test_rows_in_any_order(count):
    """All equal, rising, falling, missing, with the largest at the end of a tile."""
    n = 100_000
    place = np.arange(n)
    rows = np.stack(
        [
            np.zeros(n),
            np.where(place % 2 == 0, 0.0, -0.0),
            place / 7,
            -place / 7,
            np.full(n, np.nan),
            np.where(place % 1999 == 1998, np.nan, 1.0),
            place // 1024,
            place % 1024 + 0.5,
        ]
    )
    program = tracegraph.jit(lambda x: tnp.top_k(x, count), device="cuda")
    check([program(rows)], [rows], [count])
    for row in rows:
        check([program(row)], [row], [count])


def test_selections_in_loops_and_branches():
    def steps(x):
        def step(i, carry):
            x, total = carry
            best, places = tnp.top_k(x, 6)
            both = tracegraph.cond(i % 2 == 0, lambda: places, lambda: tnp.top_k(-x, 6)[1])
            return (x * 3 + best[0]) % 1009, total + both

        return tracegraph.fori_loop(0, 7, step, (x, np.zeros(6, np.int64)))

    x = values(np.int32, (50_000,)) % 5000
    expected = tracegraph.jit(steps, device="host")(x)
    for found, wanted in zip(tracegraph.jit(steps, device="cuda")(x), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_at_places_are_those_of_sorted_rows(dtype):
    places = (0, 4999, 5000, 9998, 9999)
    x = values(dtype, (130, 10_000))
    found = tracegraph.jit(lambda x: apply(ranked, x, places=places), device="cuda")(x)
    assert np.asarray(found).tobytes() == in_order(x)[..., list(places)].tobytes()


def test_medians_of_long_rows():
    n = 20_000
    rows = np.stack([np.arange(n) / 7, -np.arange(n) / 7, np.zeros(n), 1e6 + np.arange(n) * 1e-9])
    rows = np.concatenate([np.tile(rows, (40, 1)), np.full((1, n), np.nan)])
    program = tracegraph.jit(lambda x: np.quantile(x, [0.1, 0.5], axis=1), device="cuda")
    np.testing.assert_allclose(program(rows), np.quantile(rows, [0.1, 0.5], axis=1), rtol=1e-13)
