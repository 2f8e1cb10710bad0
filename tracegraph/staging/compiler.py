"""The plug for the compiler: the package `lowering`, imported when a function is first compiled.

No other file of tracegraph imports it, but for `tracegraph.testing`, which nothing imports.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from tracegraph.staging import gc_pause
from tracegraph.staging.interfaces import Compiler
from tracegraph.version import __version__


@functools.cache
def default_device() -> str:
    """The device that functions run on when nothing says otherwise."""
    found: str = _lowering().default_device()
    return found


def compiler() -> Compiler:
    """The package that turns programs into executables."""
    found: Compiler = _lowering()
    return found


@functools.cache
def _lowering() -> Any:
    """The package `lowering` of this distribution, imported when first needed.

    Raises:
        ImportError: another distribution's package of that name was found, or another version.
    """
    with gc_pause.paused():
        import lowering

    version = getattr(lowering, "TRACEGRAPH_VERSION", None)
    if version != __version__:
        raise ImportError(
            f"tracegraph {__version__} needs the package `lowering` that is installed with it, but "
            f"found {inspect.getsourcefile(lowering)} "
            f"({'of another project' if version is None else f'of version {version}'}); remove or "
            "rename that one, or reinstall tracegraph"
        )
    return lowering
