"""Values, gradients and tangents of users' kernels and functions, everywhere in programs."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.cases.custom_derivatives import CASES, PLACES, POINT, Case, each_case, scalar
from tests.helpers.devices import Device


def derived(f: Any) -> Any:
    """Value and gradient, forwards and backwards."""

    def function(x: Any) -> Any:
        _, t = tracegraph.jvp(f, (x,), (np.cos(x),))
        return *tracegraph.value_and_grad(f)(x), t

    return function


PROGRAMS = {
    f"{case} {name}": (derived(scalar(place(case.function))), (POINT,))
    for case in CASES
    for name, place in PLACES.items()
}


@each_case
@pytest.mark.parametrize("place", PLACES)
def test_values_gradients_and_tangents(case: Case, place: str, device: Device) -> None:
    expected = derived(scalar(PLACES[place](case.plain)))(POINT)
    found = device.run(f"{case} {place}", np.copy(POINT), order=Random(0))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)
