"""Elementwise ops of special complex numbers, as generated CUDA C++ that runs on the CPU."""

import numpy as np

from tests.comparisons.special_values import (  # noqa: F401 - run here
    CASES,
    PROGRAMS,
    test_special_values_are_those_of_numpy,
)


def test_infinities_of_all_complex_functions_are_among_the_cases() -> None:
    assert {"sqrt_complex64", "sign_complex128", "power_complex64_complex64"} <= set(CASES)
    assert all(np.isinf(case.operands[-1]).any() for case in CASES.values())
