"""Where compiled code is kept."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from lowering.disk_cache.private_folder import make_private
from lowering.disk_cache.store import CodeStore
from tracegraph.cache import settings

CACHE_VARIABLE = settings.DIRECTORY_VARIABLE


class KeepsNothingError(RuntimeError):
    """Nothing is to be kept: the cache is switched off, or may have no bytes."""


def cache_directory() -> Path:
    """Where compiled code is kept: the folder that was set, or the user's cache directory.

    Raises:
        RuntimeError: the user has no home, as in some containers.
    """
    chosen = settings.directory()
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
        KeepsNothingError: the cache is switched off.
        UnsafeFolderError: others could write to it.
        OSError: it cannot be made or read.
        RuntimeError: the user has no home.
    """
    most = settings.max_bytes()
    if not most:
        raise KeepsNothingError("the cache on disk is switched off")
    return _opened(cache_directory(), most)


def program_store() -> CodeStore | None:
    """The store, if whole programs are kept in it; None otherwise, and where it cannot be used.

    Where code is compiled, a warning says why it cannot.
    """
    if not settings.keeps_programs():
        return None
    try:
        return code_store()
    except (OSError, RuntimeError):
        return None


@cache
def _opened(directory: Path, most: int) -> CodeStore:
    return CodeStore(make_private(directory), most)


def cache_contents() -> tuple[str | None, str, int, int]:
    """The folder, or None and why there is none; the bytes and the number of entries."""
    try:
        store = code_store()
    except (OSError, RuntimeError) as error:
        return None, str(error), 0, 0
    nbytes, entries = store.contents()
    return str(cache_directory()), "", nbytes, entries


def clear_cache() -> None:
    """Delete all entries.

    Raises:
        OSError: one cannot be deleted.
    """
    try:
        store = code_store()
    except RuntimeError:
        return
    store.clear()
