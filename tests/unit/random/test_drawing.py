"""Permutations and draws without replacement: JAX's algorithm, executed in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.threefry import threefry
from tests.helpers.traced import assert_traced_equals_eager
from tracegraph import random

KEY = random.key(7)


def words32(key: Any, count: int) -> np.ndarray[Any, Any]:
    pairs = [threefry(key, i) for i in range(count)]
    return np.array([x ^ y for x, y in pairs], np.uint32)


def shuffled(key: tuple[int, int], x: np.ndarray[Any, Any], rounds: int) -> Any:
    """`_shuffle` of jax.random: sorted by random words, with a new key in each round."""
    for _ in range(rounds):
        key, own = threefry(key, 0), threefry(key, 1)
        x = x[np.argsort(words32(own, len(x)), kind="stable")]
    return x


# 3 log(n) / log(2**32 - 1), rounded up
@pytest.mark.parametrize(("count", "rounds"), [(0, 0), (1, 0), (2, 1), (1000, 1), (1700, 2)])
def test_permutations_are_jaxs(count: int, rounds: int) -> None:
    wanted = shuffled((0, 7), np.arange(count), rounds)
    found = random.permutation(KEY, count)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, wanted)
    x = np.random.default_rng(0).normal(size=count).astype(np.float32)
    np.testing.assert_array_equal(random.permutation(KEY, x), x[wanted])
    jitted = tracegraph.jit(lambda key, x: random.permutation(key, x), device="host")
    np.testing.assert_array_equal(jitted(KEY, x), x[wanted])


def test_slices_move_together_unless_rows_are_independent() -> None:
    x = np.arange(60).reshape(3, 20)
    order = random.permutation(KEY, 20)
    np.testing.assert_array_equal(random.permutation(KEY, x, axis=1), x[:, order])
    np.testing.assert_array_equal(random.permutation(KEY, x), x[random.permutation(KEY, 3)])
    rows = random.permutation(KEY, x, axis=1, independent=True)
    np.testing.assert_array_equal(np.sort(rows, axis=1), x)
    _, own = random.split(KEY)
    orders = np.argsort(random.bits(own, x.shape, np.uint32), axis=1, kind="stable")
    np.testing.assert_array_equal(rows, np.take_along_axis(x, orders, 1))


def test_draws_without_replacement_begin_a_permutation() -> None:
    order = random.permutation(KEY, 50)
    np.testing.assert_array_equal(
        random.choice(KEY, 50, (2, 3), replace=False), order[:6].reshape(2, 3)
    )
    a = np.arange(100.0).reshape(50, 2)
    np.testing.assert_array_equal(random.choice(KEY, a, (4,), replace=False), a[order[:4]])
    columns = random.choice(KEY, a.T, (4,), replace=False, axis=1)
    np.testing.assert_array_equal(columns, a.T[:, order[:4]])
    assert random.choice(KEY, 3, (0,), replace=False).shape == (0,)


def test_draws_without_replacement_follow_probabilities() -> None:
    p = np.array([0.5, 0.0, 0.3, 0.2])
    scores = random.gumbel(KEY, (4,)) + np.log(np.maximum(p, 1e-300))
    found = random.choice(KEY, 4, (3,), replace=False, p=p)
    np.testing.assert_array_equal(found, np.argsort(-scores)[:3])
    keys = random.split(random.key(1), 4000)
    first = tracegraph.vmap(lambda key: random.choice(key, 4, (2,), replace=False, p=p)[0])(keys)
    shares = np.bincount(first, minlength=4) / 4000
    assert (np.abs(shares - p) < 4 * 0.5 / np.sqrt(4000)).all()
    assert_traced_equals_eager(
        lambda key, p: random.choice(key, 4, (2,), replace=False, p=p), KEY, p
    )


def test_misuse_is_explained() -> None:
    with pytest.raises(ValueError, match="cannot draw 4 elements from 3"):
        random.choice(KEY, 3, (4,), replace=False)
    with pytest.raises(ValueError, match="negative"):
        random.permutation(KEY, -1)
    with pytest.raises(np.exceptions.AxisError):
        random.permutation(KEY, np.ones((2, 3)), axis=2)
    with pytest.raises(TypeError, match="a key is an array of two uint32"):
        random.permutation(np.ones(3), 4)
