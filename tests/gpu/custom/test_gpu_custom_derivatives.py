"""Derivatives of users' kernels and functions on a GPU: the kernel's value, the rule's tangents."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
from tests.cases.custom_derivatives import POINT, Case, each_case, scalar
from tests.comparisons.custom_derivatives import (  # noqa: F401 - run here
    PROGRAMS,
    test_values_gradients_and_tangents,
)
from tests.helpers.compiled import gpu_jit
from tracegraph.testing import check_kernel


@each_case
def test_second_derivatives(case: Case) -> None:
    found = gpu_jit(tracegraph.hessian(scalar(case.function)))(POINT)
    expected = tracegraph.hessian(scalar(case.plain))(POINT)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-11)


@each_case
def test_lanes(case: Case) -> None:
    points = np.stack([POINT, POINT[::-1], 0.5 * POINT + 0.03])
    gradient = tracegraph.grad(scalar(case.plain))
    found = gpu_jit(tracegraph.vmap(tracegraph.grad(scalar(case.function))))(points)
    expected = np.stack([gradient(x) for x in points])
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-11)


@pytest.mark.parametrize("name", ["damped", "counted", "added"])
def test_the_kernels_compute_what_their_references_do(name: str) -> None:
    from tests.cases import custom_derivatives as cases

    arguments = {
        "damped": (POINT, POINT[::-1].copy(), 0.75),
        "counted": (POINT, np.int32(3)),
        "added": (POINT, POINT.copy()),
    }
    check_kernel(getattr(cases, name), *arguments[name], rtol=1e-13)
