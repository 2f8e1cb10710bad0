"""Derivatives of kernels and functions of users: what is derived, compiled for CPUs and GPUs."""

from __future__ import annotations

import tracegraph
from lowering.codegen.custom_kernels import custom_kernel_source
from lowering.cuda.compilation.compile import cubin, custom_cubin
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nodes import walk
from tests.cases.custom_derivatives import POINT, Case, each_case
from tests.comparisons.custom_derivatives import (  # noqa: F401 - run here
    PROGRAMS,
    test_values_gradients_and_tangents,
)


@each_case
def test_kernels_compile(case: Case) -> None:
    lowered = tracegraph.jit(case.function, device="cuda").lower(POINT)
    assert cubin(lowered.source, "sm_90").code
    for node in walk(lowered.plan.graph):
        if isinstance(node, CustomKernelNode):
            assert custom_cubin(custom_kernel_source(node), "sm_90", "unit.cu").code
