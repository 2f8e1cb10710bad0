"""Vector stores: the items of a group are computed one by one, and stored as one vector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lowering.codegen.expressions import compute, value, write_store
from lowering.codegen.maps.vector_accesses import Neighbours, is_contiguous, pack, store_line
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Store


def declare_results(writer: SourceWriter, stores: Iterable[Store], width: int) -> dict[Store, str]:
    """Declare a variable for each vector store."""
    results = {store: writer.fresh() for store in stores}
    for store, name in results.items():
        writer.line(f"{pack(store, width)} {name};")
    return results


def write_item(writer: SourceWriter, stores: Iterable[Store], results: Mapping[Store, str]) -> None:
    """Store one `item`, or put its value into the vector that will be stored."""
    for store in stores:
        if store in results:
            writer.line(f"{results[store]}.items[item] = {value(writer, store.value)};")
        else:
            write_store(writer, store, value(writer, store.value))


def store_results(
    writer: SourceWriter,
    results: Mapping[Store, str],
    width: int,
    axis: int,
    aligned: Mapping[Buffer, str],
    neighbours: Neighbours | None,
) -> None:
    """Store the vectors, cooperatively if the groups of `neighbours` are contiguous in memory."""
    compute(writer, [store.indices[0] for store in results])
    for store, name in results.items():
        together = neighbours if is_contiguous(store, axis) else None
        writer.line(store_line(writer, store, width, name, aligned, together))
