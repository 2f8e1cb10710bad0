"""The choice of what runs plans on the CPU: the environment variable TRACEGRAPH_HOST.

Where native code was asked for and cannot run, plans are interpreted, without a warning: results
are the same. `explain` says why.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from typing import Literal

VARIABLE = "TRACEGRAPH_HOST"

Kind = Literal["plain", "native"]

INSTRUCTIONS = ("fma", "f16c")
"""Instructions of x86-64 without which the library calls functions that processes do not have: all
processors since 2013 have them.
"""

OLDEST_LLVM = 20


def chosen_kind() -> Kind:
    """What TRACEGRAPH_HOST asks for, and can run; the interpreter if it is not set.

    Raises:
        ValueError: it is something else.
    """
    asked = _asked_kind()
    return "plain" if asked == "native" and why_not_native() else asked


def why_interpreted() -> str:
    """What keeps plans from being native code where that was asked for; "" if nothing does."""
    return why_not_native() if _asked_kind() == "native" else ""


@cache
def why_not_native() -> str:
    """What keeps native code from running here; "" if nothing does."""
    try:
        import llvmlite.binding as llvm
    except ImportError:  # as where no wheel is: with musl, and for new versions of Python
        return "the package llvmlite is not installed"
    except OSError as error:
        return f"llvmlite cannot be loaded: {error}"
    version = llvm.llvm_version_info[0]
    if version < OLDEST_LLVM:
        return f"llvmlite has LLVM {version}, and {OLDEST_LLVM} or newer is needed: update llvmlite"
    if platform.machine().lower() in ("x86_64", "amd64"):
        features = llvm.get_host_cpu_features()
        lacking = [name for name in INSTRUCTIONS if not features.get(name)]
        if lacking:
            return f"the processor lacks the instructions {', '.join(lacking)}"
    return ""


def _asked_kind() -> Kind:
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "plain", "native"):
        raise ValueError(
            f"{VARIABLE} is {value!r}; it takes 'plain', which interprets plans by NumPy, "
            "'native', which compiles them to machine code, or nothing: unset it"
        )
    return "native" if value == "native" else "plain"
