"""From a Program to a running graph: Program -> Plan -> Executable.

Internal to tracegraph, which imports it when a function is first compiled. What it has is imported
when it is first asked for: a program of a file that was compiled before needs no planning.
"""

from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from tracegraph.ir.program import Program as _Program
from tracegraph.staging.program_function import StoredTarget as _StoredTarget
from tracegraph.staging.scratch import Scratch as _Scratch
from tracegraph.user_source import add_own

if TYPE_CHECKING:
    from lowering.backends.gpus import open_early as open_early
    from lowering.backends.profiles import profile as profile
    from lowering.backends.registry import backend as backend
    from lowering.backends.registry import create_stream as create_stream
    from lowering.backends.registry import default_device as default_device
    from lowering.backends.registry import explain as explain
    from lowering.backends.registry import reset as reset
    from lowering.backends.registry import source as source
    from lowering.backends.registry import synchronize as synchronize
    from lowering.backends.registry import trim as trim
    from lowering.cuda.recipe.flat.flat_file import c_loader as c_loader
    from lowering.cuda.recipe.flat.flat_file import flat_file_of as flat_file_of
    from lowering.cuda.recipe.targets import target_of as target_of
    from lowering.cuda.recipe.targets import target_sizes as target_sizes
    from lowering.disk_cache.location import cache_contents as cache_contents
    from lowering.disk_cache.location import clear_cache as clear_cache
    from lowering.plan.plan import Plan as _Plan
    from lowering.plan.reports.explain import memory as memory
    from lowering.plan.reports.explain import schedules as schedules
    from lowering.plan.reports.graphviz import dot as dot

_MODULES = {
    "lowering.backends.gpus": ("open_early",),
    "lowering.backends.profiles": ("profile",),
    "lowering.backends.registry": (
        *("backend", "create_stream", "default_device", "explain", "reset", "source"),
        *("synchronize", "trim"),
    ),
    "lowering.cuda.recipe.flat.flat_file": ("c_loader", "flat_file_of"),
    "lowering.cuda.recipe.targets": ("target_of", "target_sizes"),
    "lowering.disk_cache.location": ("cache_contents", "clear_cache"),
    "lowering.plan.reports.explain": ("memory", "schedules"),
    "lowering.plan.reports.graphviz": ("dot",),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}

add_own(__file__)

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this

    def __getattr__(name: str) -> _Any:
        """What is imported when it is first asked for."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(_import_module(_PLACES[name]), name)
        return found


def plan_of(
    program: _Program,
    device: str,
    donated: _Sequence[int] = (),
    *,
    scratch: _Scratch = "kept",
) -> "_Plan":
    """The Plan of a program: as `lowering.lower.lower`, which is not imported for one on disk."""
    from lowering.backends.registry import target_of as planned_for
    from lowering.disk_cache.plans import kept_or_made

    def make() -> "_Plan":
        from lowering.lower import lower

        return lower(program, device, donated, scratch=scratch)

    return kept_or_made(program, planned_for(device), donated, scratch, make)


def load_target(
    targets: _Mapping[str, _StoredTarget], device: str, planned: _Callable[[], _Any]
) -> _Any:
    """As `Compiler.load_target`."""
    from lowering import backend as opened
    from lowering.backends.cuda_backend import CudaBackend

    found = opened(device)
    if not isinstance(found, CudaBackend):
        return f"targets are for GPUs, and not for {device}"
    return found.load_target(targets, planned)


def plan_without_libraries(program: _Program, donated: _Sequence[int] = ()) -> "_Plan":
    """As `Compiler.plan_without_libraries`."""
    from lowering.lower import lower_without_libraries

    return lower_without_libraries(program, "cuda", donated)


# tracegraph compares it with its own version, to know this package from another of the name.
TRACEGRAPH_VERSION = "0.1.0"
