"""Where compiled code is kept."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from lowering.disk_cache.private_folder import make_private
from lowering.disk_cache.store import CodeStore

CACHE_VARIABLE = "TRACEGRAPH_CACHE_DIR"
CACHE_BYTES = 1 << 30


def cache_directory() -> Path:
    """Where compiled code is kept: TRACEGRAPH_CACHE_DIR, or the user's cache directory.

    Raises:
        RuntimeError: the user has no home, as in some containers.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tracegraph" / "kernels"


def code_store() -> CodeStore:
    """The store of compiled code, in a folder that is made if it is missing.

    Raises:
        UnsafeFolderError: others could write to it.
        OSError: it cannot be made or read.
        RuntimeError: the user has no home.
    """
    return _opened(cache_directory())


@cache
def _opened(directory: Path) -> CodeStore:
    return CodeStore(make_private(directory), CACHE_BYTES)
