"""Profiles as a plot of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowering.plan.reports.node_times import NodeTime, alike

_MOST_BARS = 25


def plot(name: str, times: Sequence[NodeTime], axes: Any = None) -> Any:
    """A bar for each node, the longest first, with a mark at the least time where it is known."""
    if axes is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError(
                "profile.plot() draws with matplotlib, which is not installed: pip install "
                "matplotlib"
            ) from None
        _, axes = pyplot.subplots(layout="constrained")
    nodes = sorted(alike(times), key=lambda node: -node.seconds)[:_MOST_BARS]
    places = range(len(nodes))
    axes.barh(places, [node.seconds * 1e6 for node in nodes], label="measured")
    least = [(k, node.least * 1e6) for k, node in enumerate(nodes) if node.least]
    if least:
        axes.plot([x for _, x in least], [k for k, _ in least], "k|", ms=12, label="least")
        axes.legend()
    axes.set_yticks(places, [f"{node.title}, {node.line}" for node in nodes])
    axes.invert_yaxis()
    axes.set_xlabel("µs in one call")
    axes.set_title(name)
    return axes
