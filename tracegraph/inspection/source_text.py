"""Lines of the user's code, with their text where the file can be read."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from typing import Any

from tracegraph.inspection.diagram import Diagram, boxes_in, seconds_text
from tracegraph.user_source import Source, line_text

CONTEXT = 3
"""Lines before and after a line that something is made of."""


def source_text(sources: Iterable[Source]) -> str:
    """Each place once, on a line: ``"solver.py:12, in solve: y = 2 * x"``."""
    return "\n".join(dict.fromkeys(map(_line, sources)))


def _line(source: Source) -> str:
    text = linecache.getline(source.file, source.line).strip()
    return f"{source}, in {source.function}" + (f": {text}" if text else "")


def listings(diagram: Diagram, made_of: Diagram | None) -> Iterator[dict[str, Any]]:
    """The source of each file that boxes are from: rows of numbers and texts around their lines.

    A row also has the time of the boxes that are from its line, among others, if that was measured.
    `also` has what the boxes of another picture are called, by line.
    """
    lines: dict[str, set[int]] = {}
    took: dict[tuple[str, int], float] = {}
    for box in boxes_in(diagram.region):
        for source in box.sources:
            lines.setdefault(source.file, set()).add(source.line)
        for place in {(source.file, source.line) for source in box.sources}:
            if box.seconds is not None and not box.is_folded:
                took[place] = took.get(place, 0.0) + box.seconds
    also: dict[str, list[str]] = {}
    for box in () if made_of is None else boxes_in(made_of.region):
        for source in () if box.is_folded else box.sources:
            also.setdefault(f"{source.file}:{source.line}", []).append(box.title)
    for file, numbers in lines.items():
        texts = [text.rstrip("\n") for text in linecache.getlines(file)]
        near = {k for n in numbers for k in range(n - CONTEXT, n + CONTEXT + 1)}
        shown = sorted(numbers | (near & {*range(1, len(texts) + 1)}))
        rows = [
            [n, texts[n - 1] if n <= len(texts) else "", seconds_text(took.get((file, n)))]
            for n in shown
        ]
        name = line_text(file, 0).rpartition(":")[0]
        here = {key: found for key, found in also.items() if key.rpartition(":")[0] == file}
        yield {"name": name, "file": file, "rows": rows, "also": here}
