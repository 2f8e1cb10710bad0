"""The picture of a diagram, as SVG: one text that a page, a notebook or a file can hold.

It has its styles inside, for light and dark, and neither ids nor links, so that several can be in
one page. Each box is a group that has a role, a name, a tooltip, and its path as `data-box`:
``"4.1.2"`` is box 2 in region 1 of box 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from tracegraph.inspection.arrangement import Point
from tracegraph.inspection.diagram import Diagram, DiagramRegion
from tracegraph.inspection.layout import (
    CAPTION_SIZE,
    LINE_SIZE,
    PADDING,
    TITLE_SIZE,
    PlacedBox,
    PlacedRegion,
    Wire,
    baselines,
    laid_out,
)
from tracegraph.inspection.palette import DARK, LIGHT, Theme, Tone

_FONT = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def svg(diagram: Diagram) -> str:
    """The picture of a diagram, folded boxes without what is inside.

    >>> from tracegraph.inspection.diagram import Box, DiagramRegion
    >>> picture = svg(Diagram("one", "1 box", DiagramRegion("", (Box("sin"),), ())))
    >>> picture.partition("<title>")[2].partition("</title>")[0]
    'one: 1 box'
    """
    return picture(diagram, laid_out(diagram.region), False)


def picture(diagram: Diagram, placed: PlacedRegion, hidden: bool) -> str:
    """The picture of a diagram that is laid out; what is in folded boxes is there, if `hidden`."""
    width, height = _number(placed.width), _number(placed.height)
    name = quoted(f"{diagram.title}: {diagram.summary}")
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tracegraph" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" role="group" aria-label="{name}">',
            f"<title>{name}</title>",
            f"<style>{_styles(diagram.region)}</style>",
            f'<rect class="surface" width="{width}" height="{height}"/>',
            *_inside(placed, "", hidden),
            "</svg>",
        )
    )


def quoted(text: str) -> str:
    """Text for XML, in elements and attributes; what XML cannot hold is replaced."""
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def _inside(placed: PlacedRegion, path: str, hidden: bool) -> Iterator[str]:
    if placed.wires:
        yield '<g class="wires" aria-hidden="true">'
        for wire in placed.wires:
            yield _wire(wire, placed.region, path)
        yield "</g>"
    for number, box in enumerate(placed.boxes):
        yield from _box(box, f"{path}{number}", hidden)


HOTTEST = 0.45
"""The opacity of the colour of a box that took all the time."""

CLOSED = "▸"
"""What a box has in its corner that can be opened."""


def _wire(wire: Wire, region: DiagramRegion, path: str) -> str:
    edge = wire.edge
    source, target = region.boxes[edge.source], region.boxes[edge.target]
    value = source.values[edge.port] if edge.port < len(source.values) else ""
    said = f"{value + ': ' if value else ''}{source.title} → {target.title}"
    ends = f'data-from="{path}{edge.source}" data-to="{path}{edge.target}" data-port="{edge.port}"'
    return f'<path class="wire" {ends} d="{_curve(wire)}"><title>{quoted(said)}</title></path>'


def _curve(wire: Wire) -> str:
    """The path of a wire, with an arrow at its end."""
    corners: list[Point] = []
    for point in wire.route:
        if len(corners) > 1 and corners[-2][0] == corners[-1][0] == point[0]:
            corners.pop()  # one vertical line goes on in the next
        if not corners or corners[-1] != point:
            corners.append(point)
    x, y = map(_number, corners[0])
    parts = [f"M{x} {y}"]
    for (_, above), (next_x, next_y) in pairwise(corners):
        last, x, y = x, *map(_number, (next_x, next_y))
        middle = _number((above + next_y) / 2)
        parts.append(f"V{y}" if x == last else f"C{last} {middle} {x} {middle} {x} {y}")
    end_x, end_y = corners[-1]
    tip, left, right = map(_number, (end_y - 5, end_x - 3, end_x + 3))
    return "".join((*parts, f"M{left} {tip}L{x} {y}L{right} {tip}"))


def _box(placed: PlacedBox, path: str, hidden: bool) -> Iterator[str]:
    box = placed.box
    width, height = _number(placed.width), _number(placed.height)
    name = quoted(", ".join(filter(None, (box.caption, box.title, *box.lines))))
    role = "group" if placed.regions else "img"
    yield (
        f'<g class="box {box.tone}" transform="translate({_number(placed.x)} {_number(placed.y)})" '
        f'role="{role}" aria-label="{name}" data-box="{path}">'
    )
    yield f"<title>{quoted(box.tooltip or box.title)}</title>"
    yield f'<rect class="body" width="{width}" height="{height}" rx="5"/>'
    if box.seconds is not None:
        share = f'opacity="{HOTTEST * min(box.share, 1.0) ** 0.5:.3f}"'
        yield f'<rect class="heat" width="{width}" height="{height}" rx="5" {share}/>'
    caption, title, lines = baselines(placed)
    x = _number(PADDING)
    if box.caption:
        yield f'<text class="caption" x="{x}" y="{_number(caption)}">{quoted(box.caption)}</text>'
    yield f'<text class="title" x="{x}" y="{_number(title)}">{quoted(placed.title)}</text>'
    for y, line in zip(lines, placed.lines, strict=True):
        yield f'<text class="line" x="{x}" y="{_number(y)}">{quoted(line)}</text>'
    if box.is_folded:
        at = f'x="{_number(placed.closed.width - PADDING - 8)}" y="{_number(title)}"'
        yield f'<text class="toggle" {at}>{CLOSED}</text>'
    for number, region in enumerate(placed.regions if hidden or not box.is_folded else ()):
        yield from _nested(region, f"{path}.{number}", hidden, box.is_folded)
    yield "</g>"


def _nested(placed: PlacedRegion, path: str, hidden: bool, is_folded: bool) -> Iterator[str]:
    label = quoted(placed.region.label)
    display = ' display="none"' if is_folded else ""
    yield (
        f'<g class="region" transform="translate({_number(placed.x)} {_number(placed.y)})" '
        f'role="group" aria-label="{label}" data-region="{path}"{display}>'
    )
    size = f'width="{_number(placed.width)}" height="{_number(placed.height)}"'
    yield f'<rect class="ground" {size} rx="4"/>'
    if label:
        yield f'<text class="label" x="{_number(PADDING)}" y="17">{label}</text>'
    yield from _inside(placed, f"{path}.", hidden)
    yield "</g>"


def _number(value: float) -> str:
    """A coordinate, in tenths of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _styles(region: DiagramRegion) -> str:
    """The styles of the tones in use, in light and dark.

    Notebooks that have themes of their own say which one it is; elsewhere the system does.
    """
    tones = sorted(_tones(region))
    dark = [f"@media (prefers-color-scheme: dark) {{\n{_theme(DARK, tones, '')}\n}}"]
    own = (
        ("[data-jp-theme-light=true] ", LIGHT),
        ("[data-jp-theme-light=false] ", DARK),
        ("body.vscode-light ", LIGHT),
        ("body.vscode-dark ", DARK),
    )
    fonts = (
        f".tracegraph text {{ font-family: {_FONT}; font-size: {LINE_SIZE}px }}",
        f".tracegraph .toggle {{ font-size: {TITLE_SIZE}px }}",
        f".tracegraph .title {{ font-size: {TITLE_SIZE}px; font-weight: 600 }}",
        f".tracegraph .caption, .tracegraph .label {{ font-size: {CAPTION_SIZE}px; "
        "font-weight: 600; letter-spacing: 0.04em }",
        ".tracegraph .wire { fill: none; stroke-width: 1.2 }",
        ".tracegraph .body { stroke-width: 1.2 }",
        ".tracegraph .persistent > .body { stroke-width: 2.4 }",
    )
    themes = [_theme(theme, tones, before) for before, theme in own]
    return "\n" + "\n".join((*fonts, _theme(LIGHT, tones, ""), *dark, *themes)) + "\n"


def _theme(theme: Theme, tones: list[Tone], before: str) -> str:
    one = f"{before}.tracegraph"
    rules = [
        f"{one} .surface {{ fill: {theme.surface} }}",
        f"{one} .ground {{ fill: {theme.region}; stroke: {theme.wire}; stroke-opacity: 0.4 }}",
        f"{one} text {{ fill: {theme.ink} }}",
        f"{one} .line, {one} .label {{ fill: {theme.muted} }}",
        f"{one} .wire {{ stroke: {theme.wire} }}",
        f"{one} .heat {{ fill: {theme.accent} }}",
        f"{one} .heat ~ .line, {one} .heat ~ .caption {{ fill: {theme.ink} }}",
        f"{one} .box.used > .body, {one} .wire.used {{ stroke: {theme.accent} }}",
    ]
    for tone in tones:
        colours = theme.tones[tone]
        rules += [
            f"{one} .{tone} > .body {{ fill: {colours.fill}; stroke: {colours.stroke} }}",
            f"{one} .{tone} > .caption {{ fill: {colours.stroke} }}",
        ]
    return "\n".join(rules)


def _tones(region: DiagramRegion) -> set[Tone]:
    found = {box.tone for box in region.boxes}
    return found.union(*[_tones(inner) for box in region.boxes for inner in box.regions])
