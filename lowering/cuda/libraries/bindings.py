"""The bindings of NVIDIA's libraries, each imported without the others."""

from __future__ import annotations

from typing import Any

from tracegraph.single_imports import imported_alone


def binding(name: str) -> Any:
    """The module of a library, such as "cublas".

    Raises:
        ImportError: nvmath-python is not installed, or has no such library.
    """
    return imported_alone(f"nvmath.bindings.{name}", ("nvmath", "nvmath.bindings"))
