"""Neighbours of vectors: elements beside those of a group, most of which its vectors have already.

    y[i] = x[i + 1] - x[i]      of x[i + 1], three elements of four are in the vector of x[i],
    y[i] = x[(i + 1) % 8]       and of this one as well

Otherwise each item is a load of its own, whose neighbouring threads read every fourth element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowering.codegen.expressions import compute, index, stored
from lowering.codegen.flatten import POINT
from lowering.codegen.maps.vector_accesses import Variation, variation
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import Store
from tracegraph.ir.scalar import (
    Const,
    Expr,
    FloorDiv,
    Mod,
    Sum,
    floor_divide,
    linear,
    modulo,
)
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
    index = load.indices[0]
    found = None
    for vector, name in loaded.items():
        if vector.buffer is not load.buffer:
            continue
        distance = index - vector.indices[0]
        if type(distance) is Const:
            if 0 < abs(int(distance.value.real)) < width:
                return name, int(distance.value.real)
        elif found is None:
            distances = [d for d in range(1 - width, width) if d]
            near = [d for d in distances if _moved(index, d, width) == vector.indices[0]]
            found = (name, near[0]) if near else None
    return found


def _moved(index: Expr, distance: int, width: int) -> Expr | None:
    """The index that has, `distance` points further on, the value of the given one; as long as both
    points are in one group of `width`. None if none is known.

    Groups begin at multiples of the width, so that within one (x + 1) % 8 is one more than x % 8.
    """
    match index:
        case Sum(terms=terms, offset=offset):
            varies = _variation(index, width)
            if varies is Variation.VARYING:
                parts = [(_moved(term, distance, width), factor) for term, factor in terms]
                known = [(part, factor) for part, factor in parts if part is not None]
                return linear(list(known), offset) if len(known) == len(parts) else None
        case Mod(operand=operand, divisor=divisor) if divisor % width == 0:
            offset = operand.offset if isinstance(operand, Sum) else 0
            other = operand + ((offset - distance) % divisor - offset)
            if _variation(other, width) is Variation.CONSECUTIVE:
                return modulo(other, divisor)
        case FloorDiv(operand=operand, divisor=divisor) if divisor % width == 0:
            if _variation(operand - distance, width) is Variation.CONSECUTIVE:
                return floor_divide(operand - distance, divisor)
    varies = _variation(index, width)
    if varies is Variation.CONSECUTIVE:
        return index - distance
    return index if varies is Variation.UNIFORM else None


def _variation(expr: Expr, width: int) -> Variation:
    return variation(subexpressions((expr,)), width, POINT)[expr]
