"""The backend "host": a Plan run on the CPU, as machine code or by the interpreter."""

from __future__ import annotations

import platform
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.algorithms import ALGORITHMS
from lowering.host.choice import chosen_kind, why_interpreted
from lowering.host.executable import HostExecutable
from lowering.host.owned_memory import host_memory
from lowering.host.result_pool import RESULTS
from lowering.plan.plan import Plan
from lowering.plan.target.target import (
    ContractionPolicy,
    Costs,
    FusionPolicy,
    ProgramPolicy,
    Target,
)
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.ir.types import ArrayType
from tracegraph.passes import Motion
from tracegraph.staging.device_features import DeviceFeatures

if TYPE_CHECKING:
    from random import Random

TARGET = Target(
    Costs(
        kernel=0.01,
        fold=0.0,
        kernel_in_branch=0.01,
        check=0.001,
        branch=0.0,
        fork=0.0,
        skipped_sibling=0.001,
        loop_iteration=0.0,
        update=0.0,
        updates_libraries=True,
        block=0.0,
        megabyte=100.0,
        gigaflop=1e4,
        gigaoperation=1.2e5,
        collective=50.0,
        exchange=inf,
        near_line=0.5,
        columns=1,
        full_threads=1,
        cached=1 << 20,
        recompute_limit=4,
        expansion=2,
        gather_penalty=((inf, 0),),
    ),
    fusion=FusionPolicy(row_passes=8, parts=False),
    contractions=ContractionPolicy(
        reuse=1,
        most_elements=1 << 17,
        small_extent=16,
        small_products=24**3,
        most_products=1 << 40,
    ),
    factorizations=frozenset(ALGORITHMS),
    programs=ProgramPolicy(
        dict.fromkeys(("cholesky", "lu", "qr", "triangular_solve"), 32), 1 << 14
    ),
    sort_scratch=False,
    motion=Motion(cheap=True, in_vain=1 << 10, guards=True, kept=1 << 12),
)
"""What planning needs to know of machine code; the interpreter runs the same Plans. Loops and
branches are jumps, so that their nodes are free. A further nest costs a loop. Ops that cost little
are computed again rather than stored. A call of BLAS takes as long as a product of about 24 x 24
matrices by loops; a matrix that is in the near cache and a vector are faster by loops. LAPACK
is called through Python: a system of four equations takes 26 µs, and the loops of its program 0.3.
"""


class HostBackend:
    """Compiles Plans for the CPU. The options, for debugging, are those of `HostExecutable`."""

    name = "host"
    target = TARGET

    def __init__(self, *, poison: bool = False, order: Random | None = None) -> None:
        self._poison = poison
        self._order = order
        self._executables: ConcurrentWeakSet[HostExecutable] = ConcurrentWeakSet()
        self._high_water = 0

    def compile(self, plan: Plan) -> HostExecutable:
        """An executable of the plan."""
        executable = HostExecutable(plan, poison=self._poison, order=self._order)
        self._executables.add(executable)
        self._high_water = max(self._high_water, sum(self._held().values()))
        return executable

    def memory_stats(self) -> dict[str, int]:
        """Bytes by what holds them, as `tracegraph.memory_stats` has it."""
        return {
            "arrays": 0,
            "cached": RESULTS.free_bytes,
            **self._held(),
            "graph_memory": 0,
            "graph_bytes": 0,
            "graphs": sum(not e.closed for e in self._executables),
            "high_water": self._high_water,
        }

    def _held(self) -> dict[str, int]:
        present = [e for e in self._executables if not e.closed]
        return {
            "arenas": sum(sum(e.pieces().values()) for e in present),
            "constants": sum(e.memory()["constants"] for e in present),
        }

    def features(self) -> DeviceFeatures:
        """As `tracegraph.features`: there are no graphs."""
        return DeviceFeatures(device=self.name, name=platform.machine() or "an unknown processor")

    def owned(
        self, address: int, type_: ArrayType, owner: Any, stream: int | None
    ) -> np.ndarray[Any, Any]:
        """As `Backend.owned`: an array whose memory keeps the owner."""
        return host_memory(address, type_, owner)

    def create_stream(self, priority: int | None = None) -> None:
        """None: a call is over when it returns."""

    def synchronize(self) -> None:
        """Calls are over when they return."""

    def trim(self) -> None:
        """Give back what is kept of results that are gone."""
        RESULTS.clear()

    def reset(self) -> None:
        """Close all executables, and give back memory that is not in use."""
        for executable in self._executables:
            executable.close()
        self.trim()


def host_source(plan: Plan) -> str:
    """The LLVM IR of a Plan, or the CUDA C++ of its kernels if Plans are interpreted."""
    if chosen_kind() == "native":
        from lowering.native.report import source_text

        return source_text(plan)
    from lowering.backends.cuda_backend import CudaBackend

    return CudaBackend().source(plan)


def host_notes(plan: Plan) -> tuple[str, ...]:
    """What `explain` adds: the loops of each nest, or why there is no native code."""
    if chosen_kind() == "native":
        from lowering.native.report import schedules_text

        return tuple(schedules_text(plan).split("\n"))
    return (f"interpreted, not native code: {why_interpreted()}",)
