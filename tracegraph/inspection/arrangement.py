"""Layered layout of one region (Sugiyama): layers, order, coordinates, then routes of the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.coordinates import SPACE, place
from tracegraph.inspection.layers import REACH, Layers, Link, Size, spread

LANE_SPACE = 9.0
"""The distance between the lanes of long edges."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The corners of boxes, a route for each link, and the size of all; from `lanes` on, to the
    right, there are lanes alone.

    A route has an even number of points: vertical lines between points 2k and 2k+1, with curves
    from each of them to the next. Its y never decreases.
    """

    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    width: float
    height: float
    lanes: float


def arrange(
    sizes: Sequence[Size], links: Sequence[Link], near_use: Sequence[bool] = ()
) -> Arrangement:
    """Place boxes so that none overlap, and all links lead downwards.

    >>> from tracegraph.inspection.layers import Link, Size
    >>> two = arrange([Size(10, 10), Size(20, 10)], [Link(0, 1, 0)])
    >>> [corner[0] for corner in two.corners], two.width
    ([5.0, 0.0], 20.0)
    """
    layers = Layers(sizes, links, near_use)
    place(layers.rows)
    tops, bottoms = _heights(layers)
    lanes, width, first = _lanes(layers)
    corners = [(round(item.x - item.width / 2, 1), tops[item.layer]) for item in layers.boxes]
    entries = _entries(layers, lanes)
    routes = []
    for link, entry in zip(links, entries, strict=True):
        source, target = layers.boxes[link.source], layers.boxes[link.target]
        start, foot = layers.exit(link), corners[link.source][1] + sizes[link.source].height
        route = [(start, foot), (start, bottoms[source.layer])]
        if layers.span(link) > REACH:
            x = lanes[link.source, link.port]
            route += [(x, tops[source.layer + 1]), (x, bottoms[target.layer - 1])]
        else:
            for item in layers.passed(link):
                route += [(item.x, tops[item.layer]), (item.x, bottoms[item.layer])]
        end = (entry, tops[target.layer])
        routes.append((*route, end, end))
    return Arrangement(tuple(corners), tuple(routes), width, bottoms[-1] if bottoms else 0.0, first)


def _heights(layers: Layers) -> tuple[list[float], list[float]]:
    """The top and bottom of each layer; the more edges lead to one, the more space above."""
    height = [0.0] * len(layers.rows)
    for item, size in zip(layers.boxes, layers.sizes, strict=True):
        height[item.layer] = max(height[item.layer], size.height)
    tops, bottoms, y = [], [], 0.0
    for number, row in enumerate(layers.rows):
        if number:
            y += 26 + 2 * min(sum([len(item.above) for item in row]), 16)
        tops.append(y)
        y += height[number]
        bottoms.append(y)
    return tops, bottoms


def _lanes(layers: Layers) -> tuple[Mapping[tuple[int, int], float], float, float]:
    """The x of the lane of each trunk that has one, the width of all, and that without lanes."""
    width = max([item.x + item.width / 2 for row in layers.rows for item in row], default=0.0)
    free: list[int] = []  # interval colouring
    busy: list[tuple[int, int]] = []
    count, places = 0, {}
    for key in sorted(layers.lanes, key=lambda key: layers.boxes[key[0]].layer):
        first = layers.boxes[key[0]].layer + 1
        while busy and busy[0][0] < first:
            heappush(free, heappop(busy)[1])
        if not free:
            heappush(free, count)
            count += 1
        lane = heappop(free)
        heappush(busy, (layers.lanes[key], lane))
        places[key] = round(width + SPACE + lane * LANE_SPACE, 1)
    whole = round(width + (SPACE + count * LANE_SPACE if count else 0), 1)
    return places, whole, round(width, 1)


def _entries(layers: Layers, lanes: Mapping[tuple[int, int], float]) -> list[float]:
    """Where each link meets the top of its target: in the order of where they come from."""
    came: list[list[tuple[float, int]]] = [[] for _ in layers.boxes]
    for number, link in enumerate(layers.links):
        if layers.span(link) > REACH:
            x = lanes[link.source, link.port]
        else:
            passed = layers.passed(link)
            x = passed[-1].x if passed else layers.exit(link)
        came[link.target].append((x, number))
    entries = [0.0] * len(layers.links)
    for box, arrivals in enumerate(came):
        offsets = spread(len(arrivals), layers.sizes[box].width)
        for (_, number), offset in zip(sorted(arrivals), offsets, strict=True):
            entries[number] = round(layers.boxes[box].x + offset, 1)
    return entries
