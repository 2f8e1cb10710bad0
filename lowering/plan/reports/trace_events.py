"""Profiles as trace events: the JSON that Perfetto and Chrome's tracing read.

The format is that of Google's "Trace Event Format": complete events (``"ph": "X"``) with a begin
and a duration in microseconds, nested by time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lowering.plan.reports.profile import NodeTime, Profile


def trace_events(profile: Profile) -> dict[str, Any]:
    """One call of a profile, node after node; a loop or branch begins before what is inside."""
    names = {"process_name": profile.name, "thread_name": "nodes, one after the other"}
    events = [
        {"ph": "M", "pid": 1, "tid": 1, "name": kind, "args": {"name": name}}
        for kind, name in names.items()
    ]
    events += _events(profile)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def inner(nodes: Sequence[NodeTime], number: int) -> range:
    """The positions of the nodes inside of one."""
    end = number + 1
    while end < len(nodes) and nodes[end].depth > nodes[number].depth:
        end += 1
    return range(number + 1, end)


def _events(profile: Profile) -> Iterator[dict[str, Any]]:
    nodes, now = profile.nodes, 0.0
    whole = profile.seconds or 1.0
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
