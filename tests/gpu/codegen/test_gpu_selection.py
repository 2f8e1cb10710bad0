"""Selection on a device: what a stable sort finds, to the bit, for every dtype and kernel."""

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.sorting import DTYPES, values
from tracegraph.arrays.eager import apply
from tracegraph.ops.largest import largest

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
