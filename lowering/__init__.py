"""From a Program to a running graph: Program -> Plan -> Executable.

Internal to tracegraph, which imports it when a function is first compiled.
"""

from collections.abc import Sequence as _Sequence
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from lowering.backends.gpus import open_early as open_early
from lowering.backends.registry import backend as backend
from lowering.backends.registry import create_stream as create_stream
from lowering.backends.registry import default_device as default_device
from lowering.backends.registry import explain as explain
from lowering.backends.registry import reset as reset
from lowering.backends.registry import source as source
from lowering.backends.registry import synchronize as synchronize
from lowering.backends.registry import target_of as _target_of
from lowering.backends.registry import trim as trim
from lowering.disk_cache.location import cache_contents as cache_contents
from lowering.disk_cache.location import clear_cache as clear_cache
from lowering.disk_cache.plans import kept_or_made as _kept_or_made
from lowering.plan.plan import Plan as _Plan
from tracegraph.ir.program import Program as _Program
from tracegraph.staging.scratch import Scratch as _Scratch
from tracegraph.user_source import add_own

if TYPE_CHECKING:
    from lowering.backends.profiles import profile as profile
    from lowering.plan.reports.explain import memory as memory
    from lowering.plan.reports.explain import schedules as schedules
    from lowering.plan.reports.graphviz import dot as dot

add_own(__file__)

_REPORTS = {
    "profile": "backends.profiles",
    "memory": "plan.reports.explain",
    "schedules": "plan.reports.explain",
    "dot": "plan.reports.graphviz",
}
"""Modules of what few programs ask for, imported when it is."""

if not TYPE_CHECKING:  # a type checker would find any name in a module that has this

    def __getattr__(name: str) -> _Any:
        if name not in _REPORTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(_import_module(f"{__name__}.{_REPORTS[name]}"), name)


def plan_of(
    program: _Program,
    device: str,
    donated: _Sequence[int] = (),
    *,
    scratch: _Scratch = "kept",
) -> _Plan:
    """The Plan of a program: as `lowering.lower.lower`, which is not imported for one on disk."""

    def make() -> _Plan:
        from lowering.lower import lower

        return lower(program, device, donated, scratch=scratch)

    return _kept_or_made(program, _target_of(device), donated, scratch, make)


# tracegraph compares it with its own version, to know this package from another of the name.
TRACEGRAPH_VERSION = "0.1.0"
