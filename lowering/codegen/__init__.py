"""CUDA C++ of a Plan's kernels, and how they are launched."""

from lowering.codegen.unit import (
    ConditionHandle,
    KernelCode,
    Parameter,
    Unit,
    Workspace,
    unit_source,
)

__all__ = ["ConditionHandle", "KernelCode", "Parameter", "Unit", "Workspace", "unit_source"]
