"""Thread block clusters: the lanes of a row are the threads of several blocks.

Devices before sm_90 have none. There the first block of each cluster takes the whole row, and the
others exit. The text has both variants, so that it depends on the Plan only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.source_writer import SourceWriter

ARRIVE, WAIT = "tg_cluster_arrive();", "tg_cluster_wait();"


def cluster_barrier(writer: SourceWriter) -> None:
    """Write a barrier of the whole cluster."""
    writer.line(ARRIVE)
    writer.line(WAIT)


@contextmanager
def _directive(writer: SourceWriter, text: str) -> Iterator[None]:
    writer.line(text)
    with writer.scope():
        yield


def cluster_variants(writer: SourceWriter, geometry: RowGeometry) -> Iterator[RowGeometry]:
    """Yield the geometry to write a nest for, first with clusters and then without. `tile` and the
    block's `rank` in the cluster are declared.
    """
    writer.line(f"const int tile = block / {geometry.cluster}, rank = block % {geometry.cluster};")
    with _directive(writer, "#ifdef TG_CLUSTERS"):
        yield geometry
    with _directive(writer, "#else"):
        writer.line("if (rank != 0) return;")
        yield replace(geometry, cluster=1, lanes=geometry.threads)
    writer.line("#endif")
