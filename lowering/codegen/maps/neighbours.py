"""Neighbours of vectors: elements beside those of a group, most of which its vectors have already.

    y[i] = x[i + 1] - x[i]      of x[i + 1], three elements of four are in the vector of x[i]

Otherwise each item is a load of its own, whose neighbouring threads read every fourth element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowering.codegen.expressions import compute, index, stored
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import Store
from tracegraph.ir.scalar import Const
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions


def bind_neighbours(
    writer: SourceWriter, stores: Sequence[Store], loaded: Mapping[Load, str], width: int
) -> None:
    """Write the loads of flat stores that read beside a vector, for one `item` of a group.

    `loaded` has the names of the vectors, one for each `part`.
    """
    for load in subexpressions(stored(stores)):
        if type(load) is not Load or load in loaded or load.guard is not None:
            continue
        found = _beside(load, loaded, width)
        if found is None:
            continue
        vector, distance = found
        compute(writer, load.indices)
        place = f"item + {distance}" if distance > 0 else f"item - {-distance}"
        test = f"{place} < {width}" if distance > 0 else f"{place} >= 0"
        inside = f"{vector}[part].items[({place}) & {width - 1}]"
        outside = f"{writer.pointers[load.buffer]}[{index(writer, load.indices[0])}]"
        name = writer.fresh()
        writer.line(f"const {c_type(load.dtype)} {name} = {test} ? {inside} : {outside};")
        writer.bind(load, name)


def _beside(load: Load, loaded: Mapping[Load, str], width: int) -> tuple[str, int] | None:
    """The name of a vector beside which a load reads, and how far from its items."""
    for vector, name in loaded.items():
        if vector.buffer is load.buffer:
            distance = load.indices[0] - vector.indices[0]
            if type(distance) is Const and 0 < abs(int(distance.value.real)) < width:
                return name, int(distance.value.real)
    return None
