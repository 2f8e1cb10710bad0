"""Libraries of NVIDIA, loaded in threads while the modules that call them are imported.

To load cuBLAS takes 0.06 s, and cuSOLVER with what it needs as long. What calls them would load
them itself; then they are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from threading import Thread

LIBRARIES: Mapping[str, str] = {
    **dict.fromkeys(("MatrixProduct", "TriangularSolve", "BatchedLU", "BatchedSolve"), "cublas"),
    **dict.fromkeys(("LapackRoutine", "BatchedCholesky"), "cusolver"),
    "FourierTransform": "cufft",
}
"""What calls are of, by the names of their classes, as `library_calls.CAPTURED` has it."""


def load_early(kinds: Iterable[str]) -> None:
    """Begin to load the libraries of calls, by the names of their classes. An error is raised when
    they are called.
    """
    for name in sorted({LIBRARIES[kind] for kind in kinds if kind in LIBRARIES}):
        _begin(name)


@cache
def _begin(name: str) -> None:
    Thread(target=_load, args=(name,), name=f"tracegraph loads {name}").start()


def _load(name: str) -> None:
    with suppress(Exception):  # no package, no file: each raises its own class
        from cuda.pathfinder import load_nvidia_dynamic_lib

        load_nvidia_dynamic_lib(name)
