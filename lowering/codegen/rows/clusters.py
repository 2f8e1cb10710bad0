"""Clusters: blocks that run together, whose lanes share the loop of one row.

Devices before sm_90 have none. There the first block of each cluster has the row to itself, and the
others end at once: the text has both, so that it depends on the Plan alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.source_writer import SourceWriter

ARRIVE, WAIT = "tg_cluster_arrive();", "tg_cluster_wait();"


def cluster_barrier(writer: SourceWriter) -> None:
    """Let all threads of a cluster wait for each other, with nothing to do in between."""
    writer.line(ARRIVE)
    writer.line(WAIT)


@contextmanager
def _directive(writer: SourceWriter, text: str) -> Iterator[None]:
    writer.line(text)
    with writer.scope():
        yield


def cluster_variants(writer: SourceWriter, geometry: RowGeometry) -> Iterator[RowGeometry]:
    """Yield the shape to write a nest for, first with clusters and then without; `tile` and, with
    clusters, `rank` are declared.
    """
    writer.line(f"const int tile = block / {geometry.cluster}, rank = block % {geometry.cluster};")
    with _directive(writer, "#ifdef TG_CLUSTERS"):
        yield geometry
    with _directive(writer, "#else"):
        writer.line("if (rank != 0) return;")
        yield replace(geometry, cluster=1, lanes=geometry.threads)
    writer.line("#endif")
