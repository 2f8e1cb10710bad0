"""Gathers of elements and rows on the host, and the arithmetic of their positions."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.host.tuning.instructions.memory_orders import memory_order
from tests.cases.host_nests import assert_same, random, steps_of


def takes(made, size):
    """Whether it gathers this many elements."""
    source, *positions = made.inputs
    return len(positions) == 1 and not source.dims and np.prod(positions[0].shape) == size


def test_elements_are_gathered_in_the_order_of_their_positions():
    def function(x, i, y):
        return (x.reshape(-1)[i].T + y,)

    x, y = random(22, 478), random(478, 22)
    i = np.random.default_rng(0).integers(-22 * 478, 22 * 478, (22, 478))
    (take,) = [made for made in steps_of(function, x, i, y) if takes(made, i.size)]
    assert memory_order(take.inputs[1]) == memory_order(take.output) == (1, 0)
    assert_same(function, x, i, y)


@pytest.mark.parametrize("permutation", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_rows_are_gathered_at_positions_of_any_order(permutation):
    def function(x, i):
        return (x[i.transpose(permutation)] + 1,)

    x, i = random(9, 6), np.random.default_rng(1).integers(-9, 9, (3, 4, 5))
    assert_same(function, x, i)


@pytest.mark.parametrize("rows", [20, 90])
def test_large_remainders_are_computed_from_quotients(rows):
    """Rows and columns of positions in a transposed array are quotients and remainders."""

    def function(x, i):
        return (x.T.reshape(-1)[i],)

    x, i = random(rows, 70), np.random.default_rng(2).integers(-70 * rows, 70 * rows, 70 * rows)
    steps = steps_of(function, x, i)
    divided = [made.function for made in steps if made.function in (np.remainder, np.floor_divide)]
    expected = {np.floor_divide} if rows == 90 else {np.floor_divide, np.remainder}
    assert (set(divided), len(divided)) == (expected, len(expected))
    assert_same(function, x, i)
