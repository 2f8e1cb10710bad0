"""Clusters: blocks that run together, whose lanes share the loop of one row.

Devices before sm_90 have none. There the first block of each cluster has the row to itself, and the
others end at once: the text has both, so that it depends on the Plan alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from lowering.codegen.geometry_records import ReduceShape
from lowering.codegen.source_writer import Body

ARRIVE, WAIT = "tg_cluster_arrive();", "tg_cluster_wait();"


def wait_for_cluster(body: Body) -> None:
    """Let all threads of a cluster wait for each other, with nothing to do in between."""
    body.line(ARRIVE)
    body.line(WAIT)


@contextmanager
def _directive(body: Body, text: str) -> Iterator[None]:
    body.line(text)
    with body.scope():
        yield


def write_both(body: Body, shape: ReduceShape) -> Iterator[ReduceShape]:
    """Yield the shape to write a nest for, first with clusters and then without; `tile` and, with
    clusters, `rank` are declared.
    """
    body.line(f"const int tile = block / {shape.cluster}, rank = block % {shape.cluster};")
    with _directive(body, "#ifdef TG_CLUSTERS"):
        yield shape
    with _directive(body, "#else"):
        body.line("if (rank != 0) return;")
        yield replace(shape, cluster=1, lanes=shape.threads)
    body.line("#endif")
