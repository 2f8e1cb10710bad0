"""Outcomes as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import geometric_mean
from typing import Any

from .outcome import OURS, Figure, Outcome

COLUMNS = (
    *("row", "unit", "tracegraph", "best peer", "", "times", "limit", "part", "roofline"),
    *("first, ms", "peer's first"),
)


def heading(run: dict[str, Any]) -> str:
    """How a run is made, line by line."""
    width = max(map(len, run))
    return "\n".join(f"{key:<{width}}  {_plain(value)}" for key, value in run.items())


def block(outcome: Outcome) -> str:
    """One row in full."""
    row = outcome.row
    lines = [f"{row.name}: {row.title}; {', '.join(outcome.inputs)}; {row.unit.label}"]
    for label, figure in (*outcome.figures.items(), *outcome.limits.items()):
        first = outcome.first_runs.get(label)
        told = f"   first run {_number(first)} ms" if first is not None else ""
        lines.append(f"  {label:<14}{_figure(figure)}{told}")
    if outcome.pace is not None:
        lines.append(f"  {'a Python call':<14}{_figure(outcome.pace)}, in ns, one a turn")
    lines += [f"  {label:<14}left out: {why}" for label, why in outcome.failures.items()]
    return "\n".join(lines)


def table(outcomes: Sequence[Outcome]) -> str:
    """All rows: tracegraph beside the best peer and the limit.

    "times" is how many times as fast as that peer tracegraph is, "part" which part of the limit it
    reaches, and "roofline" which part of the device's limits, by the bytes and operations of the
    plan's nodes; in all, more is better. "first" is the first run, with tracing and compilation.
    """
    return _aligned([COLUMNS, *map(_cells, outcomes)], left=(0, 1, 4))


def means(outcomes: Sequence[Outcome]) -> str:
    """Geometric means over the rows that each peer took part in; empty without peers."""
    times, first = defaultdict(list), defaultdict(list)
    for outcome in outcomes:
        for label, ratio in outcome.against_peers.items():
            times[label].append(ratio)
        for label, ratio in outcome.first_against_peers.items():
            first[label].append(ratio)
    if not times:
        return ""
    lines = [
        (label, str(len(ratios)), *(_number(geometric_mean(r)) for r in (ratios, first[label])))
        for label, ratios in times.items()
    ]
    return _aligned([("geometric mean", "rows", "times", "first run"), *lines], left=(0,))


def gradients(outcomes: Sequence[Outcome]) -> str:
    """How many times as long as a function alone it takes with its gradient, by library; empty
    where no row is a gradient of another.
    """
    by_row = {outcome.row.name: outcome.figures for outcome in outcomes}
    lines = []
    for outcome in outcomes:
        function = by_row.get(outcome.row.derivative_of or "", {})
        for label, figure in outcome.figures.items():
            if label in function:
                times = [function[label].median, figure.median]
                numbers = (*times, times[1] / times[0])
                lines.append((outcome.row.name, label, *map(_number, numbers)))
    if not lines:
        return ""
    return _aligned([("gradient", "", "function", "with gradient", "times"), *lines], left=(0, 1))


def _aligned(cells: Sequence[Sequence[str]], left: Sequence[int]) -> str:
    """Lines of cells in columns, to the right but for those at `left`."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def _cells(outcome: Outcome) -> tuple[str, ...]:
    peer = outcome.best_peer
    return (
        outcome.row.name,
        outcome.row.unit.label,
        _median(outcome.figures.get("tracegraph")),
        _median(outcome.figures[peer]) if peer else "-",
        peer or "",
        _number(outcome.against_peer),
        _median(outcome.limits.get(outcome.best_limit or "")),
        _number(outcome.against_limit),
        _number(outcome.roofline),
        _number(outcome.first_runs.get(OURS)),
        _number(outcome.first_runs.get(peer or "")),
    )


def _figure(figure: Figure) -> str:
    quartiles = f"[{_number(figure.low)} … {_number(figure.high)}]"
    return f"{_number(figure.median):>9}  {quartiles:<20} of {figure.samples:>6} samples"


def _median(figure: Figure | None) -> str:
    return "-" if figure is None else _number(figure.median)


def _number(x: float | None) -> str:
    """Three significant digits, without an exponent."""
    if x is None:
        return "-"
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return str(value)
