"""Layered layout of one region (Sugiyama): layers, order in layers, coordinates, routes.

Longest-path layering; order by barycentres; coordinates by isotonic regression, which moves the
boxes of a layer towards their neighbours and keeps them apart. All edges of a port share one trunk:
down to `REACH` layers it passes between the boxes, and longer ones run in lanes on the right. So
the work grows with boxes and edges, and not with the length of edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

REACH = 10
"""How many layers further down a target is at most, for an edge to pass between the boxes."""

SPACE, WIRE_SPACE, LANE_SPACE = 22.0, 12.0, 9.0
"""The distance between boxes of a layer, of what is beside an edge, and between lanes."""

PORT_SPACE = 26.0
"""The most that the ports of a box are apart."""

_SWEEPS = 6
_WIRE_WEIGHT = 4.0  # how much rather an edge is straight than a box above its neighbours

Point = tuple[float, float]


class Size(NamedTuple):
    """Width and height of a box."""

    width: float
    height: float


class Link(NamedTuple):
    """An edge from a port of a box to a later box."""

    source: int
    target: int
    port: int


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The corners of boxes, a route for each link, and the size of all.

    A route has an even number of points: vertical lines between points 2k and 2k+1, with curves
    from each of them to the next. Its y never decreases.
    """

    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def arrange(
    sizes: Sequence[Size], links: Sequence[Link], near_use: Sequence[bool] = ()
) -> Arrangement:
    """Place boxes so that none overlap, and all links lead downwards.

    >>> two = arrange([Size(10, 10), Size(20, 10)], [Link(0, 1, 0)])
    >>> [corner[0] for corner in two.corners], two.width
    ([5.0, 0.0], 20.0)
    """
    layers = _layers(len(sizes), links, near_use)
    grid = _Grid(sizes, layers, links)
    grid.order()
    grid.place()
    return grid.arrangement()


def _layers(count: int, links: Sequence[Link], near_use: Sequence[bool]) -> list[int]:
    """Longest-path layering."""
    layers = [0] * count
    first_use = [count] * count
    for source, target, _ in sorted(links, key=lambda link: link.target):
        layers[target] = max(layers[target], layers[source] + 1)
    for source, target, _ in links:
        first_use[source] = min(first_use[source], layers[target])
    for box, near in enumerate(near_use):
        if near and layers[box] == 0 and first_use[box] < count:
            layers[box] = first_use[box] - 1
    return layers


@dataclass(slots=True)
class _Item:
    """A box, or the place where a trunk passes a layer."""

    layer: int
    width: float
    x: float = 0.0  # of its centre
    place: float = 0.0  # in its layer
    above: list[_End] = field(default_factory=list)
    below: list[_End] = field(default_factory=list)
    is_box: bool = True


class _End(NamedTuple):
    """The other end of a piece of an edge, and where on it, from its centre."""

    item: _Item
    offset: float = 0.0


class _Grid:
    """The layers of a region, with all that is in them."""

    def __init__(self, sizes: Sequence[Size], layers: list[int], links: Sequence[Link]) -> None:
        self.sizes = sizes
        self.links = links
        self.boxes = [_Item(layer, s.width) for layer, s in zip(layers, sizes, strict=True)]
        self.layers: list[list[_Item]] = [[] for _ in range(max(layers, default=-1) + 1)]
        for item in self.boxes:
            self.layers[item.layer].append(item)
        self.ports = _ports(links, sizes)
        self.trunks: dict[tuple[int, int], list[_Item]] = {}
        self.lanes: dict[tuple[int, int], int] = {}  # the last layer that a lane passes
        for link in links:
            self._connect(link)

    def _connect(self, link: Link) -> None:
        """Make the trunk of a link as long as that needs."""
        source, target = self.boxes[link.source], self.boxes[link.target]
        key, span = (link.source, link.port), target.layer - source.layer
        if span > REACH:
            self.lanes[key] = max(self.lanes.get(key, 0), target.layer - 1)
            return
        trunk = self.trunks.setdefault(key, [])
        while len(trunk) < span - 1:
            item = _Item(source.layer + len(trunk) + 1, 0.0, is_box=False)
            self._join(trunk[-1] if trunk else source, item, 0.0 if trunk else self.ports[key])
            self.layers[item.layer].append(item)
            trunk.append(item)
        last = trunk[span - 2] if span > 1 else source
        self._join(last, target, self.ports[key] if span == 1 else 0.0)

    @staticmethod
    def _join(upper: _Item, lower: _Item, offset: float) -> None:
        upper.below.append(_End(lower, -offset))
        lower.above.append(_End(upper, offset))

    # -- order -----------------------------------------------------------------------------------

    def order(self) -> None:
        """Order each layer by the barycentres of what it is connected to, down and up in turn."""
        for layer in self.layers:
            _number(layer)
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            for layer in self.layers if down else reversed(self.layers):
                for item in layer:
                    ends = item.above if down else item.below
                    if ends:
                        item.place = sum([end.item.place for end in ends]) / len(ends)
                layer.sort(key=_place)
                _number(layer)

    # -- coordinates -----------------------------------------------------------------------------

    def place(self) -> None:
        """Give each item its x: near what it is connected to, and clear of what is beside it."""
        spaces = [_spaces(layer) for layer in self.layers]
        for layer, apart in zip(self.layers, spaces, strict=True):
            for item, x in zip(layer, _apart([0.0] * len(layer), [1.0] * len(layer), apart),
                               strict=True):  # fmt: skip
                item.x = x
        numbers = range(len(self.layers))
        for sweep in range(_SWEEPS + 1):
            last = sweep == _SWEEPS
            for number in numbers if sweep % 2 == 0 else reversed(numbers):
                layer = self.layers[number]
                wanted, weights = [], []
                for item in layer:
                    one = item.above if sweep % 2 == 0 else item.below
                    ends = [*item.above, *item.below] if last else one
                    wanted.append(_centre(ends) if ends else item.x)
                    weights.append(1.0 if item.is_box else _WIRE_WEIGHT)
                for item, x in zip(layer, _apart(wanted, weights, spaces[number]), strict=True):
                    item.x = x
        left = min([item.x - item.width / 2 for layer in self.layers for item in layer], default=0)
        for layer in self.layers:
            for item in layer:
                item.x = round(item.x - left, 1)

    def arrangement(self) -> Arrangement:
        """Everything with its coordinates."""
        tops, bottoms = self._heights()
        lanes, width = self._lanes()
        corners = tuple([
            (round(item.x - item.width / 2, 1), tops[item.layer]) for item in self.boxes
        ])  # fmt: skip
        entries = self._entries(lanes)
        routes = []
        for number, link in enumerate(self.links):
            key = (link.source, link.port)
            source, target = self.boxes[link.source], self.boxes[link.target]
            start = round(source.x + self.ports[key], 1)
            foot = corners[link.source][1] + self.sizes[link.source].height
            route = [(start, foot), (start, bottoms[source.layer])]
            if target.layer - source.layer > REACH:
                x = lanes[key]
                route += [(x, tops[source.layer + 1]), (x, bottoms[target.layer - 1])]
            else:
                for item in self.trunks[key][: target.layer - source.layer - 1]:
                    route += [(item.x, tops[item.layer]), (item.x, bottoms[item.layer])]
            end = (entries[number], tops[target.layer])
            routes.append((*route, end, end))
        return Arrangement(corners, tuple(routes), width, bottoms[-1] if bottoms else 0.0)

    def _heights(self) -> tuple[list[float], list[float]]:
        """The top and bottom of each layer; the more edges lead to one, the more space above."""
        height = [0.0] * len(self.layers)
        for item, size in zip(self.boxes, self.sizes, strict=True):
            height[item.layer] = max(height[item.layer], size.height)
        tops, bottoms, y = [], [], 0.0
        for number, layer in enumerate(self.layers):
            if number:
                y += 26 + 2 * min(sum([len(item.above) for item in layer]), 16)
            tops.append(y)
            y += height[number]
            bottoms.append(y)
        return tops, bottoms

    def _lanes(self) -> tuple[Mapping[tuple[int, int], float], float]:
        """The x of the lane of each trunk that has one, and the width of all."""
        width = max([item.x + item.width / 2 for layer in self.layers for item in layer], default=0)
        free: list[int] = []  # interval colouring
        busy: list[tuple[int, int]] = []
        count, places = 0, {}
        for key in sorted(self.lanes, key=lambda key: self.boxes[key[0]].layer):
            first = self.boxes[key[0]].layer + 1
            while busy and busy[0][0] < first:
                heappush(free, heappop(busy)[1])
            if not free:
                heappush(free, count)
                count += 1
            lane = heappop(free)
            heappush(busy, (self.lanes[key], lane))
            places[key] = round(width + SPACE + lane * LANE_SPACE, 1)
        return places, round(width + (SPACE + count * LANE_SPACE if count else 0), 1)

    def _entries(self, lanes: Mapping[tuple[int, int], float]) -> list[float]:
        """Where each link meets the top of its target: in the order of where they come from."""
        came: list[list[tuple[float, int]]] = [[] for _ in self.boxes]
        for number, (source, target, port) in enumerate(self.links):
            span = self.boxes[target].layer - self.boxes[source].layer
            if span > REACH:
                x = lanes[source, port]
            elif span > 1:
                x = self.trunks[source, port][span - 2].x
            else:
                x = self.boxes[source].x + self.ports[source, port]
            came[target].append((x, number))
        entries = [0.0] * len(self.links)
        for box, arrivals in enumerate(came):
            spread = _spread(len(arrivals), self.sizes[box].width)
            for (_, number), offset in zip(sorted(arrivals), spread, strict=True):
                entries[number] = round(self.boxes[box].x + offset, 1)
        return entries


def _ports(links: Sequence[Link], sizes: Sequence[Size]) -> dict[tuple[int, int], float]:
    """Where each port that is in use is, from the centre of its box."""
    used: dict[int, set[int]] = {}
    for link in links:
        used.setdefault(link.source, set()).add(link.port)
    return {
        (box, port): offset
        for box, ports in used.items()
        for port, offset in zip(
            sorted(ports), _spread(len(ports), sizes[box].width), strict=True
        )
    }  # fmt: skip


def _spread(count: int, width: float) -> list[float]:
    """Places for so many ends on a side of a box, from its centre."""
    step = min(PORT_SPACE, width / (count + 1))
    return [(number - (count - 1) / 2) * step for number in range(count)]


def _place(item: _Item) -> float:
    return item.place


def _number(layer: list[_Item]) -> None:
    for place, item in enumerate(layer):
        item.place = place


def _centre(ends: list[_End]) -> float:
    return sum([end.item.x + end.offset for end in ends]) / len(ends)


def _spaces(layer: list[_Item]) -> list[float]:
    """How far the centres of neighbours in a layer have to be apart at least."""
    return [
        (one.width + other.width) / 2 + (SPACE if one.is_box and other.is_box else WIRE_SPACE)
        for one, other in pairwise(layer)
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
