"""Source locations: the line of the user's code that an equation, an effect or an error is from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import optree

_OWN_DIRECTORIES = tuple(
    f"{Path(m).parent}{os.sep}" for m in (__file__, np.__file__, optree.__file__)
)


class Source(NamedTuple):
    """A line of the user's code. It is a key wherever nests are joined: a tuple is hashed in C.

    `within` holds the records of the unrolled loops around the line, outermost first. Lowering sets
    it.
    """

    file: str
    line: int
    function: str
    within: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{self.line}"


def lines_of(sources: Iterable[Source]) -> str:
    """The lines as users read them, each once: functions of one line have several sources."""
    return ", ".join(dict.fromkeys(map(str, sources)))


class _OwnFiles(dict[str, bool]):
    """Whether a file of Python code belongs to this package, NumPy or optree, by its name."""

    def __missing__(self, file: str) -> bool:
        own = self[file] = file.startswith(_OWN_DIRECTORIES)
        return own


_is_own = _OwnFiles()


def user_source(own: int = 1) -> Source | None:
    """The innermost frame of user code; the first `own` frames are known to be this package's."""
    frame: FrameType | None = sys._getframe(own)
    while frame is not None:
        code = frame.f_code
        if not _is_own[code.co_filename]:
            return _source(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


_source = lru_cache(maxsize=4096)(Source)
