"""Profiles as trace events: the JSON that Perfetto and Chrome's tracing read.

The format is that of Google's "Trace Event Format": complete events (``"ph": "X"``) with a begin
and a duration in microseconds, nested by time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lowering.plan.reports.node_times import NodeTime, inner


def trace_events(name: str, nodes: Sequence[NodeTime]) -> dict[str, Any]:
    """One call, node after node; a loop or branch begins before what is inside."""
    names = {"process_name": name, "thread_name": "nodes, one after the other"}
    events = [
        {"ph": "M", "pid": 1, "tid": 1, "name": kind, "args": {"name": text}}
        for kind, text in names.items()
    ]
    events += _events(nodes)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def written_events(path: str | os.PathLike[str], events: Mapping[str, Any]) -> Path:
    """The path of a file, to which events are written.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    target.write_text(json.dumps(events, indent=1), "utf-8")
    return target


def _events(nodes: Sequence[NodeTime]) -> Iterator[dict[str, Any]]:
    now, whole = 0.0, sum([node.seconds for node in nodes]) or 1.0
    for number, node in enumerate(nodes):
        inside = sum([nodes[k].seconds for k in inner(nodes, number)])
        said: dict[str, Any] = {
            "line": node.line,
            "runs": node.runs,
            "own microseconds": node.seconds * 1e6,
            "part of all": node.seconds / whole,
            "bytes that it must move": node.work.required,
        }
        if node.least is not None:
            said["least microseconds"] = node.least * 1e6
        if node.part is not None:
            said["part of the limit"] = node.part
        yield {
            "ph": "X",
            "pid": 1,
            "tid": 1,
            "name": node.title,
            "cat": "loop or branch" if inside else "node",
            "ts": now * 1e6,
            "dur": (node.seconds + inside) * 1e6,
            "args": said,
        }
        now += node.seconds
