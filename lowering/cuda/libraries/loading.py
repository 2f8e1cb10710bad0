"""Libraries of NVIDIA, loaded in threads while the modules that call them are imported.

To load cuBLAS takes 0.06 s, and cuSOLVER with what it needs as long. What calls them would load
them itself; then they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from threading import Thread

from lowering.plan.calls.fourier import FourierTransform
from lowering.plan.calls.lapack import (
    BatchedCholesky,
    BatchedLU,
    BatchedSolve,
    LapackRoutine,
    TriangularSolve,
)
from lowering.plan.calls.library_call import LibraryCall
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import LibraryNode, launched
from lowering.plan.plan import Plan

LIBRARIES: Mapping[type[LibraryCall], str] = {
    **dict.fromkeys((MatrixProduct, TriangularSolve, BatchedLU, BatchedSolve), "cublas"),
    **dict.fromkeys((LapackRoutine, BatchedCholesky), "cusolver"),
    FourierTransform: "cufft",
}
"""What calls are of, as `library_calls.CAPTURED` has it."""


def load_early(plan: Plan) -> None:
    """Begin to load the libraries that a Plan calls. What fails is told when they are called."""
    nodes = [node for node in launched(plan.graph) if isinstance(node, LibraryNode)]
    for name in sorted({LIBRARIES[type(n.call)] for n in nodes if type(n.call) in LIBRARIES}):
        _begin(name)


@cache
def _begin(name: str) -> None:
    Thread(target=_load, args=(name,), name=f"tracegraph loads {name}").start()


def _load(name: str) -> None:
    with suppress(Exception):  # no package, no file: each raises its own class
        from cuda.pathfinder import load_nvidia_dynamic_lib

        load_nvidia_dynamic_lib(name)
