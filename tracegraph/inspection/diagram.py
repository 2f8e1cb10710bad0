"""Diagrams: what there is to draw, as data without sizes and places.

    Diagram := title summary Region
    Region  := label { Box* Edge* }         closed: no edge crosses its border
    Box     := title lines … Region*        an operation, a node, an input

Boxes are numbered in their region. Edges lead from lower numbers to higher ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.palette import Tone
from tracegraph.user_source import Source


def seconds_text(seconds: float | None) -> str:
    """``"12.5 µs"``; empty for None."""
    if seconds is None:
        return ""
    number = seconds * 1e6
    return f"{number:,.0f} µs" if number >= 99.95 else f"{number:.3g} µs"


Facts = Mapping[str, str]
"""What a side panel says of a box: texts of a line or many, by what they are."""


def no_facts() -> Facts:
    """The facts of a box that has none."""
    return {}


@dataclass(frozen=True, slots=True)
class Box:
    """A box: an operation, a node, an input.

    `caption` is the kind of thing in a word or two, where the title does not say it. `values` names
    what leaves by each of the ports. With `near_use`, a box that waits for none is placed above its
    first user instead of at the top. `facts` is called when they are shown. `sources` are the
    user's lines. A box that `is_folded` is drawn without its regions until a click opens it.
    `seconds` is what it took without what is inside, if that was measured, and `share` which part
    that is of all.
    """

    title: str
    lines: tuple[str, ...] = ()
    caption: str = ""
    tone: Tone = "plain"
    tooltip: str = ""
    values: tuple[str, ...] = ()
    regions: tuple[DiagramRegion, ...] = ()
    near_use: bool = False
    facts: Callable[[], Facts] = no_facts
    sources: tuple[Source, ...] = ()
    is_folded: bool = False
    seconds: float | None = None
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from a port of one box to a later box of the same region, by their positions."""

    source: int
    target: int
    port: int = 0


@dataclass(frozen=True, slots=True)
class DiagramRegion:
    """Boxes in a topological order, and edges between them."""

    label: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A picture to be drawn, with a title and a summary in a line."""

    title: str
    summary: str
    region: DiagramRegion

    @property
    def size(self) -> int:
        """The number of boxes, at all levels."""
        return sum(1 for _ in boxes_in(self.region))

    @property
    def drawn(self) -> int:
        """The number of boxes that are drawn before a click opens others."""
        return sum(1 for _ in boxes_in(self.region, folded=False))

    def to_depth(self, depth: int | None) -> Diagram:
        """The diagram with this many levels; boxes at the last one say how much is inside."""
        return self if depth is None else replace(self, region=_cut(self.region, depth))


def boxes_in(region: DiagramRegion, folded: bool = True) -> Iterator[Box]:
    """The boxes of a region and of those inside, those in folded boxes among them if asked for."""
    for box in region.boxes:
        yield box
        for inner in box.regions if folded or not box.is_folded else ():
            yield from boxes_in(inner, folded)


def _cut(region: DiagramRegion, depth: int) -> DiagramRegion:
    return replace(region, boxes=tuple([_cut_box(box, depth - 1) for box in region.boxes]))


def _cut_box(box: Box, depth: int) -> Box:
    if box.is_folded:  # a group is no level
        depth += 1
    if depth and box.regions:
        return replace(box, regions=tuple([_cut(region, depth) for region in box.regions]))
    count = sum(1 for region in box.regions for _ in boxes_in(region))
    if not count:
        return replace(box, regions=())
    return replace(box, regions=(), lines=(*box.lines, f"… {count} inside"))
