"""Derivatives of kernels and functions of users: what is derived, compiled for CPUs and GPUs."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.codegen.custom_kernels import custom_kernel_source
from lowering.cuda.compilation.compile import cubin, custom_cubin
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import walk
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


@each_case
def test_kernels_compile(case: Case) -> None:
    lowered = tracegraph.jit(case.function, device="cuda").lower(POINT)
    assert cubin(lowered.source, "sm_90").code
    for node in walk(lowered.plan.graph):
        if isinstance(node, CustomKernelNode):
            assert custom_cubin(custom_kernel_source(node), "sm_90", "unit.cu").code
