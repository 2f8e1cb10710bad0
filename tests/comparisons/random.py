"""Draws of random numbers: the bits of the host, or its numbers but for rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.random_limits import EXACT, ROUNDED
from tests.helpers.devices import Device
from tracegraph import random

KEY = random.key(1701)
DISTRIBUTIONS = (random.normal, random.exponential, random.gumbel, random.laplace, random.logistic)


def walk(key: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return x ^ random.bits(random.fold_in(key, i), x.shape)

    return tracegraph.fori_loop(0, 5, step, np.zeros(1000, np.uint64))


BITS = {
    "split": lambda key: random.split(key, 5),
    "fold_in": lambda key: random.fold_in(key, 77),
    "bits of 8": lambda key: random.bits(key, (7, 3), np.uint8),
    "bits of 32": lambda key: random.bits(key, (1000,), np.uint32),
    "bits of all": lambda key: random.bits(key, (1000, 33)),
    "bits of 64": lambda key: random.bits(random.split(key)[1], (7, 3)),
    "uniform": lambda key: random.uniform(key, (3003,)),
    "uniform of float32": lambda key: random.uniform(key, (3003,), np.float32),
    "uniform of float16": lambda key: random.uniform(key, (3003,), np.float16),
    "randint": lambda key: random.randint(key, (1000,), -7, 10**12),
    "randint of all": lambda key: random.randint(key, (50,), -(2**63), 2**63),
    "randint of 8 bits": lambda key: random.randint(key, (50,), -128, 128, np.int8),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (1000,)),
    "choice": lambda key: random.choice(key, np.arange(10.0), (1000,)),
    "walk": walk,
    **EXACT,
}
NUMBERS = {
    **{
        f"{draw.__name__} of {dtype}": lambda key, d=draw, t=dtype: d(key, (3000,), t)
        for draw in DISTRIBUTIONS
        for dtype in ("float32", "float64")
    },
    "complex": lambda key: random.normal(key, (50,), np.complex64),
    "gamma distribution": lambda key: random.gamma(key, 0.7, (50,)),
    "poisson": lambda key: random.poisson(key, np.array([0.5, 3.0, 12.0, 1e3, 1e9]), (9, 5)),
    "binomial": lambda key: random.binomial(key, 40, np.array([0.01, 0.2, 0.5, 0.9]), (9, 4)),
    "ball": lambda key: random.ball(key, 3, shape=(9,)),
    "dirichlet": lambda key: random.dirichlet(key, np.array([0.5, 1.0, 2.0]), (4,)),
    **{f"{name} at limits": draw for name, draw in ROUNDED.items()},
}
PROGRAMS = {name: (f, (KEY,)) for name, f in {**BITS, **NUMBERS}.items()}


@pytest.mark.parametrize("name", BITS)
def test_bits_are_those_of_the_host(name: str, device: Device) -> None:
    found, wanted = np.asarray(device.run(name, KEY)), np.asarray(BITS[name](KEY))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_host_but_for_rounding(name: str, device: Device) -> None:
    found, wanted = np.asarray(device.run(name, KEY)), np.asarray(NUMBERS[name](KEY))
    tolerance = {8: 1e-11, 4: 1e-5, 2: 4e-3}[wanted.real.dtype.itemsize]
    assert not np.isnan(found).any()
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)
