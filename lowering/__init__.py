"""From a Program to a running graph: Program -> Plan -> Executable.

Internal to tracegraph, which imports it when a function is first compiled.
"""

from collections.abc import Sequence as _Sequence
from pathlib import Path as _Path

from lowering.backends.profiles import profile as profile
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
from lowering.plan.reports.explain import memory as memory
from lowering.plan.reports.explain import schedules as schedules
from lowering.plan.reports.graphviz import dot as dot
from tracegraph.ir.program import Program as _Program
from tracegraph.staging.scratch import Scratch as _Scratch
from tracegraph.user_source import add_own

add_own(__file__)


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


def flat_file(
    program: _Program,
    arch: str,
    donated: _Sequence[int] = (),
    *,
    inputs: _Sequence[str],
    outputs: _Sequence[str],
    libraries: bool = True,
) -> bytes:
    """The flat file of a program, as `Compiler.flat_file`."""
    from lowering.backends.flat_files import flat_file_of, planned_without_libraries

    if libraries:
        plan = plan_of(program, "cuda", donated)
    else:
        from lowering.lower import lower

        with planned_without_libraries(_target_of("cuda")) as target:
            plan = lower(program, target, donated)
    return flat_file_of(plan, arch, inputs, outputs)


def c_loader() -> _Path:
    """The header that reads flat files."""
    from lowering.backends.flat_files import C_LOADER

    return C_LOADER


# tracegraph compares it with its own version, to know this package from another of the name.
TRACEGRAPH_VERSION = "0.1.0"
