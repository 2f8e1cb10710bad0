"""Dot plots as SVG text: a row for each piece of work, a dot for each library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

LEFT, WIDTH, ROW, TOP = 200, 480, 24, 44
COLOURS = {
    "tracegraph": "#1f77d0",
    "jax": "#d9822b",
    "torch": "#c23b3b",
    "cupy": "#3b9a57",
    "numpy": "#8a63b8",
    "copy": "#888888",
    "float64": "#1f77d0",
    "float32": "#62b5e5",
}
"""Of libraries, and of dtypes where one library is compared with another in both."""

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #222; }
.title { font-weight: bold; }
line { stroke: #ccc; stroke-width: 1; }
@media (prefers-color-scheme: dark) { text { fill: #ddd; } line { stroke: #555; } }"""

Rows = Sequence[tuple[str, Mapping[str, float]]]
"""The name of each row, and the value of each library."""


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Where the axis has a line."""
    if log:
        return [
            10.0**e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ]
    step = 10.0 ** math.floor(math.log10(high))
    step = step / 2 if high / step < 3 else step
    return [step * i for i in range(math.ceil(high / step) + 1)]


def dot_plot(title: str, axis: str, rows: Rows, *, log: bool) -> str:
    """The text of a picture; ours is drawn last and larger."""
    values = [value for _, dots in rows for value in dots.values()]
    marks = ticks(min(values), max(values), log)
    first, last = (math.log10(m) if log else m for m in (marks[0], marks[-1]))
    height = TOP + ROW * len(rows) + 46

    def place(value: float) -> float:
        part = ((math.log10(value) if log else value) - first) / (last - first)
        return round(LEFT + WIDTH * part, 1)

    names = [name for name in COLOURS if any(name in dots for _, dots in rows)]
    body = [f'<text x="{LEFT}" y="16" class="title">{escape(title)}</text>']
    at = LEFT
    for name in names:
        body.append(f'<circle cx="{at + 6}" cy="31" r="5" fill="{COLOURS[name]}"/>')
        body.append(f'<text x="{at + 15}" y="35">{name}</text>')
        at += 36 + 7 * len(name)
    bottom = TOP + ROW * len(rows)
    for mark in marks:
        x = place(mark)
        body.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>')
        body.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{mark:,g}</text>')
    body.append(
        f'<text x="{LEFT + WIDTH / 2}" y="{bottom + 34}" text-anchor="middle">{escape(axis)}</text>'
    )
    for i, (label, dots) in enumerate(rows):
        y = TOP + ROW * (i + 0.5)
        body.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        for name in sorted(dots, key=lambda name: name == "tracegraph"):
            radius = 6 if name == "tracegraph" else 4.5
            said = f"<title>{escape(label)}, {name}: {dots[name]:.3g}</title>"
            body.append(
                f'<circle cx="{place(dots[name])}" cy="{y}" r="{radius}" '
                f'fill="{COLOURS[name]}">{said}</circle>'
            )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 40} {height}" '
        f'width="{LEFT + WIDTH + 40}" height="{height}" role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *body, "</svg>"]) + "\n"
