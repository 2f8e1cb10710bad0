"""Whether native code can run here."""

from __future__ import annotations

import platform
from functools import cache
from importlib.util import find_spec

NEEDED = ("fma", "f16c")
"""Instructions of x86-64 without which the library calls functions that processes do not have."""


@cache
def why_not() -> str:
    """What keeps native code from running here; "" if nothing does."""
    if find_spec("llvmlite") is None:
        return "the package llvmlite is not installed"
    if platform.machine().lower() in ("x86_64", "amd64"):
        import llvmlite.binding as llvm

        features = llvm.get_host_cpu_features()
        lacking = [name for name in NEEDED if not features.get(name)]
        if lacking:
            return f"the processor lacks {', '.join(lacking)}"
    return ""
