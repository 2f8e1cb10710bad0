"""Random numbers and special functions, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tests.comparisons.random import PROGRAMS as DRAWS
from tests.comparisons.random import (  # noqa: F401 - run here
    test_bits_are_those_of_the_host,
    test_numbers_are_those_of_the_host_but_for_rounding,
)
from tests.helpers.devices import Device
from tracegraph import special

X = np.linspace(0.05, 0.95, 12).reshape(3, 4)


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


PROGRAMS = {**DRAWS, **{name: (f, (X,)) for name, f in FUNCTIONS.items()}}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_functions_are_those_of_the_host(name: str, device: Device) -> None:
    np.testing.assert_allclose(np.asarray(device.run(name, X)), FUNCTIONS[name](X), 1e-13, 1e-14)
