"""Places of accesses: the elements that stores and loads of a map reach, at all points together.

A map may have several stores to one buffer, if they reach different elements: as those of a loop in
Python that writes to fixed indices. Places are compared axis by axis, by the intervals and the
steps of affine indices, inside the boxes of guards. Indices that begin at data, as those of a row
of a loop's step, are compared if they begin at the same. Those at a fixed index along an axis are
looked up by that index, so that the time is linear in their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from math import gcd
from typing import NamedTuple

from lowering.plan.nests.boxes import WHOLE, GuardBox, Limits
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Const, Expr, Sum
from tracegraph.ir.scalar_values import Accumulated
from tracegraph.ir.subexpressions import subexpressions

Indices = tuple[Expr, ...]


class _Span(NamedTuple):
    """Values of an index: `base`, plus `low` to `high` in steps of `step`; 0 for a single one.

    The base is what is the same at all points, and known only when the nest runs.
    """

    low: int
    high: int
    step: int
    base: frozenset[tuple[Expr, int]]


_Spans = tuple[_Span | None, ...]
"""By axis of the buffer; None where nothing is known of the index."""

_Place = tuple[Indices, _Spans]


def has_element_of_its_own(
    space: Sequence[int], indices: Indices, boxes: Sequence[GuardBox] = ()
) -> bool:
    """Whether each point of a space reaches an element that no other point reaches: each axis of
    more than one point is alone in some index, or has one index in all the boxes.
    """
    alone = {axes[0].number for axes in map(_axes, indices) if axes is not None and len(axes) == 1}
    return all(
        extent == 1 or number in alone or _is_fixed(number, boxes)
        for number, extent in enumerate(space)
    )


def _is_fixed(axis: int, boxes: Sequence[GuardBox]) -> bool:
    found = {box.limits.get(axis) for box in boxes}
    if len(found) != 1:
        return False
    (limits,) = found
    return limits is not None and limits[1] - limits[0] == 1


@dataclass(slots=True)
class Places:
    """The places of accesses to one buffer, by their indices."""

    boxes: dict[Indices, list[GuardBox]] = field(default_factory=dict)  # of the accesses there
    _known: set[_Place] = field(default_factory=set)
    _fixed: dict[int, dict[int, list[_Place]]] = field(default_factory=dict)  # by axis and index
    _moving: list[_Place] = field(default_factory=list)

    def add(self, indices: Indices, box: GuardBox = WHOLE) -> None:
        """Add the place of an access that is made inside a box."""
        boxes = self.boxes.setdefault(indices, [])
        if box not in boxes:
            boxes.append(box)
        place = (indices, _spans(indices, box))
        if place in self._known:
            return
        self._known.add(place)
        axis = _fixed_axis(place[1])
        span = None if axis is None else place[1][axis]
        if axis is None or span is None:
            self._moving.append(place)
        else:
            self._fixed.setdefault(axis, {}).setdefault(span.low, []).append(place)

    def are_apart_from(self, indices: Indices, box: GuardBox = WHOLE) -> bool:
        """Whether none of them has an element that is at these indices at any point of a box; but
        for the places of these indices.
        """
        if not self.boxes:
            return True
        spans = _spans(indices, box)
        return all(_are_apart(spans, each) for known, each in self._near(spans) if known != indices)

    def _near(self, spans: _Spans) -> Iterator[_Place]:
        """All but those that are at another index along an axis."""
        yield from self._moving
        for axis, places in self._fixed.items():
            span = spans[axis]
            if span is not None and span.step == 0 and not span.base:
                yield from places.get(span.low, ())
            else:
                yield from chain.from_iterable(places.values())


def _fixed_axis(spans: _Spans) -> int | None:
    for axis, span in enumerate(spans):
        if span is not None and span.step == 0 and not span.base:
            return axis
    return None


def _are_apart(first: _Spans, second: _Spans) -> bool:
    return any(_have_no_common_value(a, b) for a, b in zip(first, second, strict=True))


def _have_no_common_value(a: _Span | None, b: _Span | None) -> bool:
    if a is None or b is None or a.base != b.base:
        return False
    if a.high < b.low or b.high < a.low:
        return True
    step = gcd(a.step, b.step)
    return step > 1 and (a.low - b.low) % step != 0


def _spans(indices: Indices, box: GuardBox) -> _Spans:
    return tuple([_span(index, box.limits) for index in indices])


def _span(index: Expr, limits: Mapping[int, Limits]) -> _Span | None:
    """The values of an index inside limits; None if it is no sum of axes and of what is the same at
    all points.
    """
    low = high = _offset(index)
    step = 0
    base: list[tuple[Expr, int]] = []
    for term, factor in _terms(index):
        if type(term) is Axis:
            first, end = limits.get(term.number, (0, term.extent))
            last = max(min(end, term.extent) - 1, first)
            low += min(factor * first, factor * last)
            high += max(factor * first, factor * last)
            if last > first:
                step = gcd(step, factor)
        elif is_uniform(term):
            base.append((term, factor))
        else:
            return None
    return _Span(low, high, step, frozenset(base))


def is_uniform(expr: Expr) -> bool:
    """Whether an expression is the same at all points."""
    return not any(type(part) in (Axis, Accumulated) for part in subexpressions((expr,)))


def _axes(index: Expr) -> list[Axis] | None:
    """The axes of an index that is a sum of axes and of what is the same at all points; None for
    another one.
    """
    axes = []
    for term, _ in _terms(index):
        if type(term) is Axis:
            axes.append(term)
        elif not is_uniform(term):
            return None
    return axes


def _terms(index: Expr) -> Sequence[tuple[Expr, int]]:
    if type(index) is Const:
        return ()
    return index.terms if type(index) is Sum else ((index, 1),)


def _offset(index: Expr) -> int:
    if type(index) is Const:
        return int(index.value)  # type: ignore[arg-type]
    return index.offset if type(index) is Sum else 0
