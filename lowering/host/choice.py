"""The choice of what runs plans on the CPU: the environment variable TRACEGRAPH_HOST.

If it is not set, plans are native code. Where that cannot run, they are interpreted, without a
warning: results are the same but for rounding. `explain` says why.
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
    """What TRACEGRAPH_HOST asks for; if it is not set, native code where that can run.

    Raises:
        ValueError: it is something else.
        RuntimeError: it asks for native code, which cannot run here.
    """
    asked = _asked_kind()
    if asked == "plain":
        return "plain"
    lacking = why_not_native()
    if lacking and asked == "native":
        raise RuntimeError(
            f"{VARIABLE} is 'native', but {lacking}; without the variable, plans are interpreted"
        )
    return "plain" if lacking else "native"


def why_interpreted() -> str:
    """Why plans are interpreted; "" if they are native code."""
    return f"{VARIABLE} is 'plain'" if _asked_kind() == "plain" else why_not_native()


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


def _asked_kind() -> Kind | None:
    match os.environ.get(VARIABLE, ""):
        case "":
            return None
        case "plain":
            return "plain"
        case "native":
            return "native"
        case other:
            raise ValueError(
                f"{VARIABLE} is {other!r}; it takes 'plain', which interprets plans by NumPy, "
                "'native', which compiles them to machine code, or nothing: unset it, and they "
                "are compiled where that is possible"
            )
