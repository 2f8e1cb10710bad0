"""Derivatives at singular points, on a device."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tests.programs.exact_derivatives import PROGRAMS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_the_host(name: str) -> None:
    function, x = PROGRAMS[name]
    expected = np.asarray(tracegraph.jit(function, device="host")(x))
    found = tracegraph.jit(function, device="cuda")(x)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(np.asarray(found), expected, 1e-5, 1e-6)
