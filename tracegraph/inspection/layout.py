"""Layout of nested regions: each is laid out by itself, then it is part of the box around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unicodedata import east_asian_width

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.arrangement import Point, arrange
from tracegraph.inspection.diagram import Box, DiagramRegion, Edge
from tracegraph.inspection.layers import Link, Size

TITLE_SIZE, LINE_SIZE, CAPTION_SIZE = 13.0, 11.0, 9.5
"""Sizes of fonts in pixels."""

ADVANCE = 0.61
"""The width of a character of a monospaced font, as a part of its size; Menlo's is the widest."""

PADDING = 10.0
"""Between the border of a box or region and what is inside."""

LABEL_HEIGHT = 18.0

_CAPTION_HEIGHT, _TITLE_HEIGHT, _LINE_HEIGHT = 13.0, 18.0, 15.0
_MOST_LINES, _MOST_CHARACTERS = 8, 56
TOGGLE = 14.0
"""The width of the mark that boxes have which can be opened."""

SHELF = 1400.0
"""Regions of one box go below each other beyond this width."""


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """A box with its corner in its region, its size, the texts that fit, and what is inside.

    `closed` is its size without its regions, which a folded box has at first.
    """

    box: Box
    x: float
    y: float
    width: float
    height: float
    title: str
    lines: tuple[str, ...]
    regions: tuple[PlacedRegion, ...]
    closed: Size


@dataclass(frozen=True, slots=True)
class Wire:
    """An edge with its route through its region; see `arrangement.Arrangement`."""

    edge: Edge
    route: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class PlacedRegion:
    """A region with its corner in the box around it, its size, and what is inside.

    `origin` is where the arrangement of its boxes begins, `content` the size of that, and `least`
    the width that its label and the texts of the box around it need. Right of `lanes` there are
    only lanes of long edges.
    """

    region: DiagramRegion
    x: float
    y: float
    width: float
    height: float
    boxes: tuple[PlacedBox, ...]
    wires: tuple[Wire, ...]
    origin: Point
    least: float
    lanes: float
    content: Size


def laid_out(region: DiagramRegion) -> PlacedRegion:
    """A region and all that is inside, with places and sizes."""
    return _region(region)


def text_width(text: str, size: float) -> float:
    """The width of a text in a monospaced font."""
    wide = sum(east_asian_width(character) in "WF" for character in text)
    return (len(text) + wide) * size * ADVANCE


def baselines(placed: PlacedBox) -> tuple[float, float, tuple[float, ...]]:
    """The y of the texts of a box, from its top: of its caption, its title and its lines."""
    y = PADDING + (_CAPTION_HEIGHT if placed.box.caption else 0.0)
    lines = [y + _TITLE_HEIGHT + k * _LINE_HEIGHT + 10 for k in range(len(placed.lines))]
    return PADDING + 8, y + 11, tuple(lines)


@dataclass(slots=True)
class _Sized:
    """A box whose size is known, and not yet its place."""

    box: Box
    title: str
    lines: tuple[str, ...]
    regions: tuple[PlacedRegion, ...]
    size: Size
    closed: Size


def _region(region: DiagramRegion, least: float = 0.0) -> PlacedRegion:
    """A region at the origin, at least as wide as that, with what is inside in its middle."""
    sized = [_sized(box) for box in region.boxes]
    links = [Link(edge.source, edge.target, edge.port) for edge in region.edges]
    near_use = [box.near_use for box in region.boxes]
    placed = arrange([each.size for each in sized], links, near_use)
    needed = max(text_width(region.label, CAPTION_SIZE), least - 2 * PADDING)
    inner = max(placed.width, needed)
    side = round(PADDING + (inner - placed.width) / 2, 1)
    top = PADDING + (LABEL_HEIGHT if region.label else 0.0)
    boxes = [
        PlacedBox(s.box, left + side, above + top, *s.size, s.title, s.lines, s.regions, s.closed)
        for s, (left, above) in zip(sized, placed.corners, strict=True)
    ]
    wires = [
        Wire(edge, tuple([(left + side, above + top) for left, above in route]))
        for edge, route in zip(region.edges, placed.routes, strict=True)
    ]
    height = placed.height + top + PADDING
    width = round(inner + 2 * PADDING, 1)
    origin, least = (side, top), round(needed + 2 * PADDING, 1)
    return PlacedRegion(
        region,
        0.0,
        0.0,
        width,
        height,
        tuple(boxes),
        tuple(wires),
        origin,
        least,
        placed.lanes,
        Size(placed.width, placed.height),
    )


def _sized(box: Box) -> _Sized:
    title = _shortened(box.title)
    lines = [_shortened(line) for line in box.lines]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES - 1 :] = [f"… {len(lines) - _MOST_LINES + 1} more"]
    width = max(
        text_width(title, TITLE_SIZE),
        text_width(box.caption, CAPTION_SIZE) * 1.08,  # letters are spaced
        *[text_width(line, LINE_SIZE) for line in lines],
    )
    height = PADDING + _TITLE_HEIGHT + _LINE_HEIGHT * len(lines) + PADDING / 2
    height += _CAPTION_HEIGHT if box.caption else 0.0
    least = width if len(box.regions) == 1 else 0.0
    regions, inner = _shelves([_region(region, least) for region in box.regions], height)
    closed = Size(round(width + 2 * PADDING + (TOGGLE if box.regions else 0), 1), height)
    size = closed
    if not box.is_folded:
        size = Size(round(max(closed.width, inner.width), 1), max(height, inner.height))
    return _Sized(box, title, tuple(lines), regions, size, closed)


def _shelves(regions: Sequence[PlacedRegion], top: float) -> tuple[tuple[PlacedRegion, ...], Size]:
    """Regions side by side, in rows, below the texts of their box; the size that this takes."""
    placed: list[PlacedRegion] = []
    x, y, row, width = PADDING, top, 0.0, 0.0
    for region in regions:
        if x > PADDING and x + region.width > SHELF:
            x, y, row = PADDING, y + row + PADDING, 0.0
        placed.append(replace(region, x=x, y=y))
        x, row = x + region.width + PADDING, max(row, region.height)
        width = max(width, x)
    return tuple(placed), Size(width, y + row + PADDING if placed else 0.0)


def _shortened(text: str) -> str:
    """A text that fits in a line of a box."""
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
