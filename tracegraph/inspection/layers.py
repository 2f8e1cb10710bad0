"""Layers of a region: longest-path layering, and the order in each layer by barycentres.

All edges of a port share one trunk: down to `REACH` layers it passes between the boxes, and longer
ones run in lanes on the right. So the work grows with boxes and edges, and not with the length of
edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple

from tracegraph.generated.dataclass import dataclass

REACH = 10
"""How many layers further down a target is at most, for an edge to pass between the boxes."""

PORT_SPACE = 26.0
"""The most that the ports of a box are apart."""

SWEEPS = 6
"""How often the layers are gone through, down and up in turn, to order them, and to place them."""


class Size(NamedTuple):
    """Width and height of a box."""

    width: float
    height: float


class Link(NamedTuple):
    """An edge from a port of a box to a later box."""

    source: int
    target: int
    port: int


@dataclass(slots=True)
class Item:
    """A box, or the place where a trunk passes a layer."""

    layer: int
    width: float
    x: float = 0.0  # of its centre
    place: float = 0.0  # in its layer
    above: list[End] = field(default_factory=list)
    below: list[End] = field(default_factory=list)
    is_box: bool = True


class End(NamedTuple):
    """The other end of a piece of an edge, and where on it, from its centre."""

    item: Item
    offset: float = 0.0


class Layers:
    """The layers of a region, with all that is in them, in order."""

    def __init__(
        self, sizes: Sequence[Size], links: Sequence[Link], near_use: Sequence[bool]
    ) -> None:
        layers = _layers(len(sizes), links, near_use)
        self.sizes = sizes
        self.links = links
        self.boxes = [Item(layer, s.width) for layer, s in zip(layers, sizes, strict=True)]
        self.rows: list[list[Item]] = [[] for _ in range(max(layers, default=-1) + 1)]
        for item in self.boxes:
            self.rows[item.layer].append(item)
        self.ports = _ports(links, sizes)
        self.trunks: dict[tuple[int, int], list[Item]] = {}
        self.lanes: dict[tuple[int, int], int] = {}  # the last layer that a lane passes
        for link in links:
            self._connect(link)
        self._order()

    def _connect(self, link: Link) -> None:
        """Make the trunk of a link as long as that needs."""
        source, target = self.boxes[link.source], self.boxes[link.target]
        key, span = (link.source, link.port), self.span(link)
        if span > REACH:
            self.lanes[key] = max(self.lanes.get(key, 0), target.layer - 1)
            return
        trunk = self.trunks.setdefault(key, [])
        while len(trunk) < span - 1:
            item = Item(source.layer + len(trunk) + 1, 0.0, is_box=False)
            self._join(trunk[-1] if trunk else source, item, 0.0 if trunk else self.ports[key])
            self.rows[item.layer].append(item)
            trunk.append(item)
        last = trunk[span - 2] if span > 1 else source
        self._join(last, target, self.ports[key] if span == 1 else 0.0)

    def span(self, link: Link) -> int:
        """How many layers a link leads down."""
        return self.boxes[link.target].layer - self.boxes[link.source].layer

    def exit(self, link: Link) -> float:
        """The x of the port that a link leaves by."""
        return round(self.boxes[link.source].x + self.ports[link.source, link.port], 1)

    def passed(self, link: Link) -> list[Item]:
        """Where a link without a lane passes the layers between its ends."""
        return self.trunks[link.source, link.port][: self.span(link) - 1]

    @staticmethod
    def _join(upper: Item, lower: Item, offset: float) -> None:
        upper.below.append(End(lower, -offset))
        lower.above.append(End(upper, offset))

    def _order(self) -> None:
        """Order each layer by the barycentres of what it is connected to, down and up in turn."""
        for layer in self.rows:
            _number(layer)
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for layer in self.rows if down else reversed(self.rows):
                for item in layer:
                    ends = item.above if down else item.below
                    if ends:
                        item.place = sum([end.item.place for end in ends]) / len(ends)
                layer.sort(key=_place)
                _number(layer)


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


def _ports(links: Sequence[Link], sizes: Sequence[Size]) -> dict[tuple[int, int], float]:
    """Where each port that is in use is, from the centre of its box."""
    used: dict[int, set[int]] = {}
    for link in links:
        used.setdefault(link.source, set()).add(link.port)
    found = {}
    for box, ports in used.items():
        offsets = spread(len(ports), sizes[box].width)
        found.update({(box, port): x for port, x in zip(sorted(ports), offsets, strict=True)})
    return found


def spread(count: int, width: float) -> list[float]:
    """Evenly spaced places on a side of a box, from its centre."""
    step = min(PORT_SPACE, width / (count + 1))
    return [(number - (count - 1) / 2) * step for number in range(count)]


def _place(item: Item) -> float:
    return item.place


def _number(layer: list[Item]) -> None:
    for place, item in enumerate(layer):
        item.place = place
