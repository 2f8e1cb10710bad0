"""Points of maps that disturb each other, found by following each point of small nests.

Planning decides by intervals of indices whether points may run in any order. Here every point is
followed: the elements that it reads and writes, where guards hold. Indices that are data are not
known, and stand for one unknown element of each axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from lowering.plan.nests.analysis import nest_loads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest
from lowering.plan.nodes import KernelNode, walk
from lowering.plan.plan import Plan
from tracegraph.ir.scalar import Axis, Both, Clamp, Compare, Const, Expr, FloorDiv, Mod, Select, Sum

Point = tuple[int, ...]
Element = tuple[Any, ...]


def point_races(plan: Plan) -> Iterator[str]:
    """What is wrong with the maps of a plan, each in a sentence."""
    for node in walk(plan.graph):
        for nest in node.kernel.nests if isinstance(node, KernelNode) else ():
            if isinstance(nest, MapNest):
                yield from _of_map(nest)


def _of_map(nest: MapNest) -> Iterator[str]:
    written: dict[tuple[Buffer, Element], Point] = {}
    points = list(product(*map(range, nest.space)))
    for point in points:
        for store in nest.stores:
            if store.guard is None or _holds(store.guard, point):
                element = tuple([_value(index, point) for index in store.indices])
                if not _is_inside(element, store.buffer):
                    yield f"{point} writes {element} of {store.buffer}"
                other = written.setdefault((store.buffer, element), point)
                if other != point and None not in element:
                    yield f"{other} and {point} write {element} of {store.buffer}"
    for point in points:
        for load in nest_loads(nest):
            if load.guard is None or _holds(load.guard, point):
                element = tuple([_value(index, point) for index in load.indices])
                if not _is_inside(element, load.buffer):
                    yield f"{point} reads {element} of {load.buffer}"
                other = written.get((load.buffer, element), point)
                if other != point and None not in element:
                    yield f"{point} reads {element} of {load.buffer}, which {other} writes"


def _is_inside(element: Element, buffer: Buffer) -> bool:
    return all(
        place is None or 0 <= place < extent
        for place, extent in zip(element, buffer.type.shape, strict=True)
    )


def _holds(guard: Expr, point: Point) -> bool:
    """Whether a guard may hold: an unknown one does."""
    return _value(guard, point) is not False


def _value(expr: Expr, point: Point) -> Any:
    """The value of an index or a guard at a point; None if it is not known."""
    match expr:
        case Axis(number=number):
            return point[number]
        case Const(value=value):
            return value
        case Sum(terms=terms, offset=offset):
            values = [_value(term, point) for term, _ in terms]
            if None in values:
                return None
            return offset + sum(v * f for v, (_, f) in zip(values, terms, strict=True))
        case FloorDiv(operand=operand, divisor=divisor):
            value = _value(operand, point)
            return None if value is None else value // divisor
        case Mod(operand=operand, divisor=divisor):
            value = _value(operand, point)
            return None if value is None else value % divisor
        case Clamp(operand=operand, low=low, high=high):
            value = _value(operand, point)
            return None if value is None else min(max(value, low), high)
        case Compare(relation=relation, left=left, right=right):
            one, other = _value(left, point), _value(right, point)
            if one is None or other is None:
                return None
            return {"<": one < other, ">=": one >= other, "==": one == other}[relation]
        case Both(left=left, right=right):
            values = [_value(left, point), _value(right, point)]
            return False if False in values else None if None in values else True
        case Select(predicate=predicate, chosen=chosen, other=other):
            chosen_first = _value(predicate, point)
            if chosen_first is None:
                return None
            return _value(chosen if chosen_first else other, point)
    return None
