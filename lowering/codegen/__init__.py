"""Code generation: the kernels of a Plan as one CUDA C++ translation unit.

A Plan comes in. A `Unit` goes out: source text that depends on the Plan only, so that compiled
code can be cached by it, and for each kernel node its function, parameters, grid and block. Nothing
here needs a GPU or a compiler. It may import `lowering.plan` and `tracegraph.ir`.

    translation_unit   Plan -> Unit: kernels, their parameters and their ranges of blocks
    units              the record, its text, and which functions are compiled together
    kernel_code        how a kernel is launched, and the declarations of its parameters
    nests              nests of any kind, for one block
    node_code          kernels, and parts of persistent kernels, of other nodes
    persistent         one folder for kernels that run whole graphs, loops included
    geometry           nest -> launch geometry; geometry_records holds the records
    source_writer      C++ statements in nested blocks
    expressions        scalar expressions -> statements; constants -> literals
    flatten            index arithmetic over linear indices
    maps, rows, scans  one folder for each large family of nests
    sorting            the kernels of a sort
    scatters, groups   updates: in any order or in turn; those of an element by one thread
    effects            prints, calls, conditions and counters
    kernel_parameters  what a kernel is launched with
    device             the CUDA C++ that units begin with; preamble joins the files that one uses
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from lowering.codegen.kernel_code import KernelCode as KernelCode
    from lowering.codegen.kernel_parameters import ConditionHandle as ConditionHandle
    from lowering.codegen.kernel_parameters import Parameter as Parameter
    from lowering.codegen.kernel_parameters import TableEntry as TableEntry
    from lowering.codegen.kernel_parameters import WorkspaceAddress as WorkspaceAddress
    from lowering.codegen.translation_unit import unit_source as unit_source
    from lowering.codegen.units import Unit as Unit

_MODULE_OF = {
    "Unit": "units",
    "unit_source": "translation_unit",
    "KernelCode": "kernel_code",
    **dict.fromkeys(
        ("ConditionHandle", "Parameter", "TableEntry", "WorkspaceAddress"), "kernel_parameters"
    ),
}
"""Where names are. They are imported when they are used: what launches kernels that are on disk
needs none of what writes them.
"""

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this

    def __getattr__(name: str) -> _Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _import_module(f"{__name__}.{_MODULE_OF[name]}")
        found = globals()[name] = getattr(module, name)
        return found
