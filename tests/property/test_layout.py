"""Layouts of any regions: nothing overlaps, edges lead downwards, and insides are inside."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from tracegraph.inspection.arrangement import arrange
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Edge
from tracegraph.inspection.layers import REACH, Link, Size
from tracegraph.inspection.layout import PlacedBox, PlacedRegion, laid_out
from tracegraph.inspection.svg import svg

TITLES = st.text(max_size=70)


@st.composite
def edges_of(draw: st.DrawFn, count: int) -> list[tuple[int, int, int]]:
    """Edges between this many boxes, each from a port."""
    if count < 2:
        return []
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    pairs = draw(st.sets(ends.filter(lambda pair: pair[0] != pair[1]), max_size=3 * count))
    return [(min(p), max(p), draw(st.integers(0, 2))) for p in sorted(pairs)]


@st.composite
def regions(draw: st.DrawFn, depth: int = 2) -> DiagramRegion:
    """Regions of boxes, some with regions inside."""
    count = draw(st.integers(0, 6))
    boxes = []
    for _ in range(count):
        inner = draw(st.lists(regions(depth - 1), max_size=2)) if depth else []
        lines = draw(st.lists(TITLES, max_size=3))
        caption = draw(st.sampled_from(["", "loop"]))
        near_use = draw(st.booleans())
        boxes.append(
            Box(draw(TITLES), tuple(lines), caption, regions=tuple(inner), near_use=near_use)
        )
    edges = draw(edges_of(count))
    return DiagramRegion(draw(TITLES), tuple(boxes), tuple([Edge(*edge) for edge in edges]))


def all_regions(placed: PlacedRegion) -> Iterator[PlacedRegion]:
    yield placed
    for box in placed.boxes:
        for inner in box.regions:
            yield from all_regions(inner)


def overlap(one: PlacedBox | PlacedRegion, other: PlacedBox | PlacedRegion) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def is_inside(inner: PlacedBox | PlacedRegion, outer: PlacedBox | PlacedRegion) -> bool:
    right, bottom = inner.x + inner.width, inner.y + inner.height
    return (
        min(inner.x, inner.y) >= 0
        and right <= outer.width + 0.1  # places are rounded to tenths
        and bottom <= outer.height + 0.1
    )


@given(regions())
@settings(deadline=None, max_examples=25)
def test_boxes_and_regions_keep_apart_and_inside(region: DiagramRegion) -> None:
    for placed in all_regions(laid_out(region)):
        for number, box in enumerate(placed.boxes):
            assert is_inside(box, placed)
            assert not any(overlap(box, other) for other in placed.boxes[:number])
            for position, inner in enumerate(box.regions):
                assert is_inside(inner, box)
                assert not any(overlap(inner, other) for other in box.regions[:position])


@given(regions())
@settings(deadline=None, max_examples=25)
def test_wires_lead_down_from_box_to_box_inside_of_their_region(region: DiagramRegion) -> None:
    for placed in all_regions(laid_out(region)):
        assert [wire.edge for wire in placed.wires] == list(placed.region.edges)
        for wire in placed.wires:
            source, target = placed.boxes[wire.edge.source], placed.boxes[wire.edge.target]
            (x, y), (end, bottom) = wire.route[0], wire.route[-1]
            assert y == source.y + source.height < bottom == target.y
            assert source.x <= x <= source.x + source.width
            assert target.x <= end <= target.x + target.width
            heights = [y for _, y in wire.route]
            assert heights == sorted(heights)
            assert all(0 <= x <= placed.width for x, _ in wire.route)


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), edges_of(n))), st.data())
@settings(deadline=None, max_examples=25)
def test_routes_pass_between_boxes(case: tuple[int, list], data: st.DataObject) -> None:
    count, edges = case
    edges += [(0, count - 1, 0)] if (0, count - 1, 0) not in edges else []
    links = sorted({Link(*edge) for edge in [*edges, *[(i, i + 1, 0) for i in range(count - 1)]]})
    sides = st.tuples(st.integers(10, 200), st.integers(10, 90))
    sizes = [Size(*data.draw(sides)) for _ in range(count)]
    found = arrange(sizes, links)
    assert any(link.target - link.source > REACH for link in links) == (count > REACH + 1)
    for link, route in zip(links, found.routes, strict=True):
        corners = zip(found.corners, sizes, strict=True)
        others = [
            (corner, size)
            for number, (corner, size) in enumerate(corners)
            if number not in (link.source, link.target)
        ]
        assert len(route) % 2 == 0
        assert len(route) <= 2 * REACH + 4
        for (x, top), (same, bottom) in zip(route[::2], route[1::2], strict=True):
            assert x == same
            for (left, above), (width, height) in others:
                beside = x <= left or x >= left + width
                assert beside or bottom <= above or top >= above + height
        for (_, start), (_, end) in zip(route[1::2], route[2::2], strict=False):
            for (_, above), (_, height) in others:  # a curve is in the gap between two layers
                assert end <= above or start >= above + height


@given(regions())
@settings(deadline=None, max_examples=25)
def test_the_picture_is_xml_with_a_group_for_each_box(region: DiagramRegion) -> None:
    diagram = Diagram("any", "thing", region)
    found = ElementTree.fromstring(svg(diagram).encode())
    paths = [group.get("data-box") for group in found.iter() if group.get("data-box")]
    assert len(paths) == len(set(paths)) == diagram.size


@given(regions(), st.integers(1, 3))
@settings(deadline=None, max_examples=20)
def test_a_depth_leaves_out_what_is_further_inside(region: DiagramRegion, depth: int) -> None:
    def depth_of(region: DiagramRegion) -> int:
        inner = [depth_of(inside) for box in region.boxes for inside in box.regions]
        return 1 + max(inner, default=0)

    cut = Diagram("any", "thing", region).to_depth(depth)
    assert depth_of(cut.region) <= depth
    assert len(cut.region.boxes) == len(region.boxes)
