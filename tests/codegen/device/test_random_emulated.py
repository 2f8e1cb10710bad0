"""Random numbers and special functions, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.random_limits import EXACT, ROUNDED
from tests.helpers.devices import Device
from tracegraph import random, special

KEY = random.key(1701)
X = np.linspace(0.05, 0.95, 12).reshape(3, 4)


def walk(key: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return x ^ random.bits(random.fold_in(key, i), x.shape)

    return tracegraph.fori_loop(0, 5, step, np.zeros((3, 5), np.uint64))


BITS = {
    "split": lambda key: random.split(key, 5),
    "bits of 8": lambda key: random.bits(key, (7, 3), np.uint8),
    "bits of 64": lambda key: random.bits(random.split(key)[1], (7, 3)),
    "uniform": lambda key: random.uniform(key, (333,)),
    "uniform of float32": lambda key: random.uniform(key, (333,), np.float32),
    "uniform of float16": lambda key: random.uniform(key, (333,), np.float16),
    "randint": lambda key: random.randint(key, (50,), -7, 10**12),
    "randint of all": lambda key: random.randint(key, (50,), -(2**63), 2**63),
    "randint of 8 bits": lambda key: random.randint(key, (50,), -128, 128, np.int8),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (50,)),
    "choice": lambda key: random.choice(key, np.arange(10.0), (50,)),
    "walk": walk,
    **EXACT,
}
NUMBERS = {
    "normal": lambda key: random.normal(key, (50,)),
    "complex": lambda key: random.normal(key, (50,), np.complex64),
    "gumbel": lambda key: random.gumbel(key, (50,), np.float32),
    "gamma distribution": lambda key: random.gamma(key, 0.7, (50,)),
    "poisson": lambda key: random.poisson(key, np.array([0.5, 3.0, 12.0, 1e3, 1e9]), (9, 5)),
    "binomial": lambda key: random.binomial(key, 40, np.array([0.01, 0.2, 0.5, 0.9]), (9, 4)),
    "ball": lambda key: random.ball(key, 3, shape=(9,)),
    "dirichlet": lambda key: random.dirichlet(key, np.array([0.5, 1.0, 2.0]), (4,)),
    **{f"{name} at limits": draw for name, draw in ROUNDED.items()},
}
PARAMETERS = (0.25, 3.0, 60.0, 900.0)
SEVERAL = {
    *("beta", "betaln", "kl_div", "rel_entr", "xlog1py", "xlogy", "polygamma"),
    *("gammainc", "gammaincc", "betainc", "zeta"),
}
FUNCTIONS = {name: getattr(special, name) for name in sorted(set(special.__all__) - SEVERAL)} | {
    **{f"gammainc({a})": lambda x, a=a: special.gammainc(a, a * (x + 0.5)) for a in PARAMETERS},
    **{f"gammaincc({a})": lambda x, a=a: special.gammaincc(a, a * (x + 0.5)) for a in PARAMETERS},
    **{f"betainc({a})": lambda x, a=a: special.betainc(a, 7.0 * a, x) for a in PARAMETERS},
    "zeta": lambda x: special.zeta(x + 1, 3 * x),
    "polygamma": lambda x: special.polygamma(3, x - 0.5),
    "beta": lambda x: special.beta(x, 20 * x),
    "slope": tracegraph.grad(lambda x: np.sum(special.gammaln(x) * special.i0e(x))),
}


PROGRAMS = {
    **{name: (f, (KEY,)) for name, f in {**BITS, **NUMBERS}.items()},
    **{name: (f, (X,)) for name, f in FUNCTIONS.items()},
}


@pytest.mark.parametrize("name", BITS)
def test_bits_are_those_of_the_host(name: str, device: Device) -> None:
    found, wanted = np.asarray(device.run(name, KEY)), np.asarray(BITS[name](KEY))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_host_but_for_rounding(name: str, device: Device) -> None:
    found, wanted = np.asarray(device.run(name, KEY)), np.asarray(NUMBERS[name](KEY))
    tolerance = 1e-5 if wanted.dtype.itemsize == 4 or wanted.dtype == np.complex64 else 1e-12
    if wanted.dtype == np.float16:
        tolerance = 4e-3
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_are_those_of_the_host(name: str, device: Device) -> None:
    np.testing.assert_allclose(np.asarray(device.run(name, X)), FUNCTIONS[name](X), 1e-13, 1e-14)
