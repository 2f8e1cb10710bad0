"""Random numbers on the GPU: the bits of the host, and of JAX where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.comparisons.random import (  # noqa: F401 - run here
    PROGRAMS,
    test_bits_are_those_of_the_host,
    test_numbers_are_those_of_the_host_but_for_rounding,
)
from tracegraph import random

KEY = random.key(1701)


def both(function: Any, *args: Any) -> tuple[Any, Any]:
    """What a function gives on the GPU, and on the host."""
    cuda, host = (tracegraph.jit(function, device=d)(*args) for d in ("cuda", "host"))
    return np.asarray(cuda), np.asarray(host)


# JAX, with 64-bit numbers and its default layout of bits


@pytest.fixture
def jax() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64, jax.config.jax_threefry_partitionable
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_threefry_partitionable", True)
    yield jax
    jax.config.update("jax_enable_x64", before[0])
    jax.config.update("jax_threefry_partitionable", before[1])


@pytest.mark.parametrize("seed", [0, 42, -1, 2**40 + 5])
def test_keys_are_those_of_jax(seed: int, jax: Any) -> None:
    key, theirs = random.key(seed), jax.random.PRNGKey(seed)
    np.testing.assert_array_equal(key, theirs)
    np.testing.assert_array_equal(random.split(key, 7), jax.random.split(theirs, 7))
    np.testing.assert_array_equal(random.split(key, (2, 3)), jax.random.split(theirs, (2, 3)))
    for data in (0, 1, 12345):
        np.testing.assert_array_equal(random.fold_in(key, data), jax.random.fold_in(theirs, data))


EXACT = {
    "bits8": lambda r, key: r.bits(key, (5, 7), "uint8"),
    "bits16": lambda r, key: r.bits(key, (5, 7), "uint16"),
    "bits32": lambda r, key: r.bits(key, (5, 7), "uint32"),
    "bits64": lambda r, key: r.bits(key, (5, 7), "uint64"),
    "uniform16": lambda r, key: r.uniform(key, (99,), "float16"),
    "uniform32": lambda r, key: r.uniform(key, (99,), "float32"),
    "uniform64": lambda r, key: r.uniform(key, (99,), "float64"),
    "randint": lambda r, key: r.randint(key, (99,), 0, 10),
    "randint32": lambda r, key: r.randint(key, (99,), -5, 1000, "int32"),
    "randint of all": lambda r, key: r.randint(key, (99,), -(2**31), 2**31 - 1, "int64"),
    "uint32": lambda r, key: r.randint(key, (99,), 3, 2**32 - 1, "uint32"),
    "bernoulli": lambda r, key: r.bernoulli(key, shape=(99,)),
    "bernoulli of p": lambda r, key: r.bernoulli(key, np.float64(0.3), (99,)),
    "rademacher": lambda r, key: r.rademacher(key, (99,), "int32"),
    "choice": lambda r, key: r.choice(key, 7, (99,)),
    "choice of rows": lambda r, key: r.choice(key, np.arange(12.0).reshape(4, 3), (9,)),
    "categorical": lambda r, key: r.categorical(key, np.log([0.1, 0.6, 0.3]), shape=(99,)),
}
ROUNDED = {
    "uniform of a range": lambda r, key, d: r.uniform(key, (999,), d, -2.0, 7.0),
    "normal": lambda r, key, d: r.normal(key, (999,), d),
    "truncated normal": lambda r, key, d: r.truncated_normal(key, -1.0, 2.0, (999,), d),
    "exponential": lambda r, key, d: r.exponential(key, (999,), d),
    "gumbel": lambda r, key, d: r.gumbel(key, (999,), d),
    "laplace": lambda r, key, d: r.laplace(key, (999,), d),
}


@pytest.mark.parametrize("name", EXACT)
def test_numbers_are_those_of_jax(name: str, jax: Any) -> None:
    wanted = np.asarray(EXACT[name](jax.random, jax.random.PRNGKey(1701)))
    for found in (
        np.asarray(EXACT[name](random, KEY)),
        np.asarray(tracegraph.jit(lambda key: EXACT[name](random, key), device="cuda")(KEY)),
    ):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ROUNDED)
def test_distributions_are_those_of_jax_but_for_rounding(name: str, dtype: str, jax: Any) -> None:
    """JAX's inverse error function of float64 is 1e-12 off in the tails."""
    wanted = np.asarray(ROUNDED[name](jax.random, jax.random.PRNGKey(1701), dtype))
    found = tracegraph.jit(lambda key: ROUNDED[name](random, key, dtype), device="cuda")(KEY)
    tolerance = 1e-11 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: random.poisson(key, np.array([0.5, 9.0, 11.0, 1e4]), (5000, 4)),
        lambda key: random.binomial(key, 60, np.array([0.01, 0.3, 0.5, 0.95]), (5000, 4)),
        lambda key: random.geometric(key, 0.2, (5000,)),
    ],
)
def test_counts_are_those_of_the_host(draw: Any) -> None:
    """But for one that rounding accepts here and rejects there."""
    found, wanted = both(draw, KEY)
    assert found.dtype == wanted.dtype
    assert np.mean(found != wanted) < 1e-3


def test_vectors_are_those_of_the_host() -> None:
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    found, wanted = both(lambda key: random.multivariate_normal(key, np.ones(2), cov, (500,)), KEY)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    found, wanted = both(lambda key: random.orthogonal(key, 4, (50,)), KEY)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    found, wanted = both(lambda key: random.ball(key, 3, shape=(500,)), KEY)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
