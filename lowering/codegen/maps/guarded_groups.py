"""Groups of points that are inside of all parts of a space: they need no guards.

A group is inside if each test of a guard holds at all of its points. What one test compares is the
same for a whole group, or counts up with its points: then it is tested at the point that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lowering.codegen.flatten import POINT, Flattener
from lowering.codegen.maps.vector_accesses import Variation, variation, vectors_of
from lowering.plan.nests.kernel import MapNest, Store
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Compare, Const, Expr, Select, bounds, compare, conjuncts
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import Substitution, subexpressions

LEAST_INSIDE = 0.75
"""Part of all points that must be inside: groups at the ends of parts are stored point by point,
which takes a sector of memory for each."""


@dataclass(frozen=True, slots=True)
class InsideGroups:
    """Flat stores as they are in groups inside of all parts, and the tests, at the first point of a
    group, that it is one.
    """

    stores: tuple[Store, ...]
    tests: tuple[Expr, ...]


def inside_groups(stores: Sequence[Store], width: int) -> InsideGroups | None:
    """The groups of `width` points inside of all parts; None if their points differ in more than
    the ends of parts.

    What is selected by the position is a part, too, if most groups are inside of it. So is what is
    selected otherwise, as behind the first row, if whole groups are outside of the other part.
    """
    tests: dict[Expr, Expr] = {}
    for store in stores:
        for test in () if store.guard is None else conjuncts(store.guard):
            found = _at_first(test, width)
            if found is None:
                return None
            tests[test] = found
    if _part_inside(tests) < LEAST_INSIDE:
        return None
    values = subexpressions([store.value for store in stores])
    for predicate in dict.fromkeys([each.predicate for each in values if type(each) is Select]):
        also = {test: _at_first(test, width) for test in conjuncts(predicate)}
        known = {test: found for test, found in also.items() if found is not None}
        if len(known) == len(also) and _part_inside([*tests, *known]) >= LEAST_INSIDE:
            tests |= known
        elif (outside := _negated(predicate)) is not None and outside not in tests:
            whole = variation(subexpressions((outside,)), width, POINT)[outside]
            if whole is Variation.UNIFORM and _part_inside([*tests, outside]) >= LEAST_INSIDE:
                tests[outside] = outside
    new = Substitution()
    for expr in values:
        if type(expr) is Load and expr.guard is not None:
            indices = tuple([new[index] for index in expr.indices])
            holds = tests.keys() >= set(conjuncts(expr.guard))
            new[expr] = Load.make(expr.buffer, indices, None if holds else new[expr.guard])
        elif type(expr) is Select and tests.keys() >= set(conjuncts(expr.predicate)):
            new[expr] = new[expr.chosen]
        elif type(expr) is Select and _negated(expr.predicate) in tests:
            new[expr] = new[expr.other]
    inside = [Store(store.buffer, store.indices, new[store.value]) for store in stores]
    return InsideGroups(tuple(inside), tuple(dict.fromkeys(tests.values())))


def _negated(predicate: Expr) -> Expr | None:
    """What holds where a predicate does not, if that is a comparison as well."""
    if type(predicate) is not Compare or predicate.relation == "==":
        return None
    other = "<" if predicate.relation == ">=" else ">="
    return compare(other, predicate.left, predicate.right)


def _part_inside(tests: Iterable[Expr]) -> float:
    """The part of a space where all these tests hold, as far as they are of an index each."""
    limits: dict[Expr, tuple[int, int]] = {}
    for test in tests:
        if type(test) is Compare and type(test.right) is Const:
            bound = int(test.right.value)  # type: ignore[arg-type]
            low, high = limits.get(test.left, bounds(test.left) or (0, 0))
            if test.relation in (">=", "=="):
                low = max(low, bound)
            if test.relation in ("<", "=="):
                high = min(high, bound - (test.relation == "<"))
            limits[test.left] = low, high
    part = 1.0
    for index, (low, high) in limits.items():
        first, last = bounds(index) or (0, 0)
        part *= max(high - low + 1, 0) / (last - first + 1)
    return part


def can_be_grouped(nest: MapNest, width: int) -> bool:
    """Whether groups of `width` points of a map are stored as vectors, where it has guards.

    Neighbouring threads would store to single elements of many sectors otherwise.
    """
    if width == 1 or all(store.guard is None for store in nest.stores):
        return True
    flat = Flattener({POINT: list(enumerate(nest.space))})
    inside = inside_groups(list(map(flat.store, nest.stores)), width)
    if inside is None:
        return False
    return len(vectors_of(inside.stores, width).stores) == len(inside.stores)


def _at_first(test: Expr, width: int) -> Expr | None:
    """The test at the first point of a group that holds if the given one does at all points."""
    varies = variation(subexpressions((test,)), width, POINT)
    if varies[test] is Variation.UNIFORM:
        return test
    if type(test) is not Compare or type(test.right) is not Const:
        return None
    if varies[test.left] is not Variation.CONSECUTIVE:
        return None
    if test.relation == "<":
        return compare("<", test.left + (width - 1), test.right)
    return test if test.relation == ">=" else None
