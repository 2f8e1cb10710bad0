"""Coordinates of a layer's boxes: near what they are connected to, and clear of each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

from tracegraph.inspection.layers import SWEEPS, End, Item

SPACE, WIRE_SPACE = 22.0, 12.0
"""The distance between boxes of a layer, and of what is beside an edge."""

_WIRE_WEIGHT = 4.0  # how much rather an edge is straight than a box near its neighbours


def place(rows: Sequence[list[Item]]) -> None:
    """Give each item of the layers its x, from 0."""
    spaces = [_spaces(row) for row in rows]
    for row, apart in zip(rows, spaces, strict=True):
        _set(row, _apart([0.0] * len(row), [1.0] * len(row), apart))
    numbers = range(len(rows))
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for number in numbers if down else reversed(numbers):
            row = rows[number]
            ends = [item.above if down else item.below for item in row]
            _set(row, _nearest(row, ends, spaces[number]))
    for row, apart in zip(rows, spaces, strict=True):
        _set(row, _nearest(row, [[*item.above, *item.below] for item in row], apart))
    _straighten(rows, spaces)
    left = min([item.x - item.width / 2 for row in rows for item in row], default=0.0)
    for row in rows:
        _set(row, [round(item.x - left, 1) for item in row])


def _set(row: list[Item], places: list[float]) -> None:
    for item, x in zip(row, places, strict=True):
        item.x = x


def _nearest(row: list[Item], ends: list[list[End]], apart: list[float]) -> list[float]:
    """The places nearest to the centres of what the items are connected to."""
    wanted = [_centre(each) if each else item.x for item, each in zip(row, ends, strict=True)]
    weights = [1.0 if item.is_box else _WIRE_WEIGHT for item in row]
    return _apart(wanted, weights, apart)


def _straighten(rows: Sequence[list[Item]], spaces: list[list[float]]) -> None:
    """Move what can move without a push to where its edge is straight, downwards, then upwards."""
    pairs = list(zip(rows, spaces, strict=True))
    for down in (True, False):
        for row, apart in pairs if down else reversed(pairs):
            for number, item in enumerate(row):
                ends = item.above if down else item.below
                if len(ends) != 1 or (item.is_box and len(item.above) + len(item.below) > 2):
                    continue
                low = row[number - 1].x + apart[number - 1] if number else -inf
                high = row[number + 1].x - apart[number] if number < len(apart) else inf
                x = _centre(ends)
                if low <= x <= high:
                    item.x = x


def _centre(ends: list[End]) -> float:
    return sum([end.item.x + end.offset for end in ends]) / len(ends)


def _spaces(row: list[Item]) -> list[float]:
    """How far the centres of neighbours in a layer have to be apart at least."""
    return [
        (one.width + other.width) / 2 + (SPACE if one.is_box and other.is_box else WIRE_SPACE)
        for one, other in pairwise(row)
    ]


def _apart(wanted: list[float], weights: list[float], apart: list[float]) -> list[float]:
    """The places nearest to those wanted, by least squares, at these distances at least.

    Without the distances it is isotonic regression, which pooling adjacent violators solves.
    """
    shift, shifts = 0.0, [0.0]
    for distance in apart:
        shift += distance
        shifts.append(shift)
    pools: list[list[float]] = []  # sum of weighted places, weight, count
    for x, weight, moved in zip(wanted, weights, shifts, strict=False):
        pool = [(x - moved) * weight, weight, 1]
        while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
            pool = [a + b for a, b in zip(pools.pop(), pool, strict=True)]
        pools.append(pool)
    places = [total / weight for total, weight, count in pools for _ in range(int(count))]
    return [place + moved for place, moved in zip(places, shifts, strict=False)]
