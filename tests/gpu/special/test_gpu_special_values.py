"""Elementwise ops of special complex numbers give on the GPU what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tests.cases.special_values import CASES, assert_numpys


@pytest.mark.parametrize("name", CASES)
def test_special_values_are_those_of_numpy(name: str) -> None:
    case = CASES[name]
    with np.errstate(all="ignore"):
        assert_numpys(case, tracegraph.jit(case.apply, device="cuda"))
