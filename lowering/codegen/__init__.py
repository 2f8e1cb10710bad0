"""CUDA C++ of a Plan's kernels, and how they are launched."""

from lowering.codegen.parameters import ConditionHandle, Parameter, TableEntry, Workspace
from lowering.codegen.translation_unit import KernelCode, Unit, unit_source

__all__ = [
    "ConditionHandle",
    "KernelCode",
    "Parameter",
    "TableEntry",
    "Unit",
    "Workspace",
    "unit_source",
]
