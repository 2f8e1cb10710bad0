"""Draw the pictures of docs/performance.md from recorded figures.

Run it after figures were recorded: ``python -m tests.pages.figures_page``. A test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.pages.dot_plots import Rows, dot_plot

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "figures"

LIBRARIES = {
    "tracegraph": ("tracegraph",),
    "jax": ("jax", "jax-cb"),
    "torch": ("torch", "torch graph"),
    "cupy": ("cupy", "cupy graph"),
    "numpy": ("numpy",),
}
"""Each library is drawn with the best of its ways to run a row."""


def recorded(file: str) -> Mapping[str, Any]:
    """The rows of a file of figures, by name."""
    return {row["name"]: row for row in json.loads((FOLDER / file).read_text("utf-8"))["rows"]}


def best(row: Mapping[str, Any], names: tuple[str, ...]) -> float | None:
    """The best median of these contestants, if one of them ran."""
    found = [row["contestants"].get(name, {}).get("median") for name in names]
    medians = [median for median in found if median is not None]
    if not medians:
        return None
    return float(max(medians) if row["higher_is_better"] else min(medians))


def dots(file: str, names: tuple[str, ...], limit: bool = False) -> Rows:
    """Rows of a file; with the speed of a copy, where that is their limit."""
    rows = []
    for name in names:
        row = recorded(file)[name]
        values = {library: best(row, ways) for library, ways in LIBRARIES.items()}
        if limit:
            values["copy"] = row["limits"]["limit: copy"]["median"]
        rows.append((name, {key: value for key, value in values.items() if value is not None}))
    return rows


def large_programs() -> Iterator[tuple[str, str, list[str]]]:
    """Program, dtype and the cells behind of each row in the tables of large programs."""
    text = (DOCS / "performance.md").read_text("utf-8")
    part = text.partition("### Large programs")[2].partition("\n###")[0]
    for name, bits, cells in re.findall(r"^\| `(\w+)_f(64|32)` \|(.*)\|$", part, re.M):
        yield name, f"float{bits}", [cell.strip() for cell in cells.split("|")]


def beside_jax() -> Rows:
    """How many times as fast as JAX each large program is."""
    rows: dict[str, dict[str, float]] = {}
    for name, dtype, (ours, jax, *_) in large_programs():
        rows.setdefault(name, {"jax": 1.0})[dtype] = float(jax) / float(ours)
    return list(rows.items())


def rooflines() -> Rows:
    """Which part of the device's limits each large program reaches, where that is known."""
    rows: dict[str, dict[str, float]] = {}
    for name, dtype, (_, _, _, part, *_) in large_programs():
        if part != "–":
            rows.setdefault(name, {})[dtype] = float(part)
    return list(rows.items())


LOOPS = (
    "while_1ki",
    "while_1mi",
    "fori_1ki",
    "fori_1mi",
    "scan",
    "nested",
    "cg",
    "heat",
    "mandelbrot",
)
BANDWIDTH = ("sine", "sum", "softmax", "column_sums", "transpose", "cumsum")


def pictures() -> dict[str, str]:
    """The text of each picture by the name of its file."""
    return {
        "loops.svg": dot_plot(
            "Loops on an H200: time of an iteration",
            "µs, less is better",
            dots("cuda.json", LOOPS),
            log=True,
        ),
        "bandwidth.svg": dot_plot(
            "Memory-bound work on an H200",
            "GB/s, more is better",
            dots("cuda.json", BANDWIDTH, limit=True),
            log=False,
        ),
        "large_programs.svg": dot_plot(
            "Large programs on an H100, beside JAX",
            "times the speed of JAX, more is better",
            beside_jax(),
            log=True,
        ),
        "rooflines.svg": dot_plot(
            "Large programs on an H100: the part of its limits that they reach",
            "bytes or operations at full speed, over the time; 1 is the limit of memory",
            rooflines(),
            log=True,
        ),
        "loops_host.svg": dot_plot(
            "Loops on two cores of an EPYC: time of an iteration",
            "µs, less is better",
            dots("host.json", LOOPS),
            log=True,
        ),
    }


if __name__ == "__main__":
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, "utf-8")
