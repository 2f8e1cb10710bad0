"""Lines of the user's code, with their text where the file can be read."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from tracegraph.user_source import Source


def source_text(sources: Iterable[Source]) -> str:
    """Each place once, on a line: ``"solver.py:12, in solve: y = 2 * x"``."""
    return "\n".join(dict.fromkeys(map(_line, sources)))


def _line(source: Source) -> str:
    text = linecache.getline(source.file, source.line).strip()
    return f"{source}, in {source.function}" + (f": {text}" if text else "")
