"""Places of accesses: the elements that stores and loads of a map reach, at all points together.

A map may have several stores to one buffer, if they reach different elements: as those of a loop in
Python that writes to fixed indices. Places are compared axis by axis, by the intervals and the
steps of affine indices. Those at a fixed index along an axis are looked up by that index, so that
the time is linear in their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import gcd
from typing import NamedTuple

from tracegraph.ir.scalar import Axis, Const, Expr, Sum

Indices = tuple[Expr, ...]


class _Span(NamedTuple):
    """Values of an index: from `low` to `high` in steps of `step`; 0 for a single one."""

    low: int
    high: int
    step: int


_Spans = tuple[_Span, ...]
_Place = tuple[Indices, _Spans]


def has_element_of_its_own(space: Sequence[int], indices: Indices) -> bool:
    """Whether each point of a space reaches an element that no other point reaches: each axis of
    more than one point is alone in some index.
    """
    alone = {axes[0].number for axes in map(_axes, indices) if axes is not None and len(axes) == 1}
    return all(extent == 1 or number in alone for number, extent in enumerate(space))


@dataclass(slots=True)
class Places:
    """The places of accesses to one buffer, by their indices."""

    indices: set[Indices] = field(default_factory=set)
    _fixed: dict[int, dict[int, list[_Place]]] = field(default_factory=dict)  # by axis and index
    _moving: list[_Place] = field(default_factory=list)
    _are_known: bool = True

    def add(self, indices: Indices) -> None:
        """Add a place."""
        if indices in self.indices:
            return
        self.indices.add(indices)
        spans = _spans(indices)
        if spans is None:
            self._are_known = False
            return
        axis = _fixed_axis(spans)
        if axis is None:
            self._moving.append((indices, spans))
        else:
            there = self._fixed.setdefault(axis, {}).setdefault(spans[axis].low, [])
            there.append((indices, spans))

    def are_apart_from(self, indices: Indices) -> bool:
        """Whether none of them has an element that is at these indices at any point; but for the
        place of these indices, if it is one.
        """
        if not self.indices:
            return True
        spans = _spans(indices)
        if spans is None or not self._are_known:
            return False
        near = self._near(spans)
        return all(_are_apart(spans, each) for known, each in near if known != indices)

    def _near(self, spans: _Spans) -> Iterator[_Place]:
        """All but those that are at another index along an axis."""
        yield from self._moving
        for axis, places in self._fixed.items():
            if spans[axis].step == 0:
                yield from places.get(spans[axis].low, ())
            else:
                yield from chain.from_iterable(places.values())


def _fixed_axis(spans: _Spans) -> int | None:
    return next((axis for axis, span in enumerate(spans) if span.step == 0), None)


def _are_apart(first: _Spans, second: _Spans) -> bool:
    return any(_have_no_common_value(a, b) for a, b in zip(first, second, strict=True))


def _have_no_common_value(a: _Span, b: _Span) -> bool:
    if a.high < b.low or b.high < a.low:
        return True
    step = gcd(a.step, b.step)
    return step > 1 and (a.low - b.low) % step != 0


def _spans(indices: Indices) -> _Spans | None:
    found = []
    for index in indices:
        axes = _axes(index)
        if axes is None:
            return None
        low = high = _offset(index)
        step = 0
        for axis, factor in _factors(index):
            reach = factor * (axis.extent - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
            if reach:
                step = gcd(step, factor)
        found.append(_Span(low, high, step))
    return tuple(found)


def _axes(index: Expr) -> list[Axis] | None:
    """The axes of an affine index; None if it is not affine."""
    if type(index) is Const:
        return []
    if type(index) is Axis:
        return [index]
    if type(index) is Sum and all(type(term) is Axis for term, _ in index.terms):
        return [term for term, _ in index.terms]  # type: ignore[misc]
    return None


def _factors(index: Expr) -> Sequence[tuple[Axis, int]]:
    if type(index) is Axis:
        return ((index, 1),)
    return index.terms if type(index) is Sum else ()  # type: ignore[return-value]


def _offset(index: Expr) -> int:
    if type(index) is Const:
        return int(index.value)  # type: ignore[arg-type]
    return index.offset if type(index) is Sum else 0
