"""What of this installation a Plan depends on: the code of both packages, and what they call."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import ml_dtypes
import numpy as np

from tracegraph import version

_SUFFIXES = (".py", ".cuh", ".ll")


@cache
def installation() -> str:
    """A digest of versions, and of the sizes of all files of both packages.

    Of a checkout, the times of changes count, too. It takes some milliseconds, once.
    """
    roots = (Path(version.__file__).parent, Path(__file__).parents[1])
    digest = sha256()
    packages = (version.__version__, np.__version__, ml_dtypes.__version__)
    digest.update(repr((packages, platform.python_version(), platform.machine())).encode())
    for root in roots:
        is_installed = "site-packages" in root.parts or "dist-packages" in root.parts
        for name, size, when in sorted(_files(str(root))):
            digest.update(f"{name} {size} {0 if is_installed else when}\n".encode())
    return digest.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """The files below a folder: the name with its folder's, the size, the time of the change."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from ((f"{entry.name}/{n}", s, t) for n, s, t in _files(entry.path))
            elif entry.name.endswith(_SUFFIXES):
                status = entry.stat()
                yield entry.name, status.st_size, status.st_mtime_ns
