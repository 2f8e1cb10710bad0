"""One HTML file of a diagram: the picture, a side panel, and the script that fills it.

It asks for nothing from anywhere: a content security policy forbids that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion
from tracegraph.inspection.layout import PADDING, SHELF, PlacedRegion, laid_out
from tracegraph.inspection.palette import DARK, LIGHT, Theme
from tracegraph.inspection.source_text import listings
from tracegraph.inspection.svg import picture, quoted

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

_PARTS = ("view.js", "folding.js", "panel.js", "finding.js")

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{styles}
</style>
</head>
<body>
<header>
<h1>{title}</h1><p>{summary}</p>
<div id="find"><span id="count" role="status"></span><input id="query" type="search" \
placeholder="find: name, type, line" aria-label="find boxes" spellcheck="false"></div>
<nav aria-label="view">
<button id="farther" aria-label="zoom out">−</button>
<button id="closer" aria-label="zoom in">+</button>
<button id="natural">100 %</button>
<button id="fit">Fit</button>
</nav>
</header>
<main>
<div id="view">
{picture}
</div>
<aside aria-label="details">
<div id="panel" aria-live="polite"><p class="hint">Click a box for what is known of it, ▸ or ▾ to \
open or close one, a region to zoom in, and a line of the source for what is made of it. Hover a \
box or an arrow to see where a value is used.</p><p class="hint">Keys: / to find, Enter and n for \
the next match, arrows to follow values, o to open or close, f or Escape to show all, + and − to \
zoom.</p></div>
<details id="code"{has_source} open><summary>The source</summary><div id="listing"></div></details>
<details><summary>The whole text</summary><pre class="text">{text}</pre></details>
</aside>
</main>
<script type="application/json" id="facts">{facts}</script>
<script type="application/json" id="layout">{layout}</script>
<script type="application/json" id="source">{source}</script>
<script>
{script}
</script>
</body>
</html>
"""


def page(diagram: Diagram, text: str, made_of: Diagram | None = None) -> str:
    """The page of a diagram, with the text of what it shows.

    `made_of` is the picture of what it was made of, as the program of a plan: a line of the source
    also says what boxes it has there.
    """
    placed = laid_out(diagram.region)
    regions = dict(_geometry(placed, ""))
    layout = {"padding": PADDING, "shelf": SHELF, "regions": regions}
    source = list(listings(diagram, made_of))
    return _PAGE.format(
        policy=_POLICY,
        title=quoted(diagram.title),
        summary=quoted(diagram.summary),
        styles="\n".join((_colours(), _part("page.css"))),
        picture=picture(diagram, placed, True),
        text=quoted(text),
        facts=_json(dict(_facts(diagram.region, ""))),
        layout=_json(layout),
        source=_json(source),
        has_source="" if source else " hidden",
        script="\n".join(map(_part, _PARTS)),
    )


def _part(name: str) -> str:
    return files("tracegraph.inspection").joinpath("browser", name).read_text("utf-8").rstrip()


def _facts(region: DiagramRegion, path: str) -> Iterator[tuple[str, Any]]:
    """What the panel says of each box, by its path in the picture."""
    for number, box in enumerate(region.boxes):
        yield f"{path}{number}", _said(box)
        for inner, below in enumerate(box.regions):
            yield from _facts(below, f"{path}{number}.{inner}.")


def _said(box: Box) -> Any:
    return {
        "title": box.title,
        "values": box.values,
        "facts": dict(box.facts()),
        "words": " ".join((box.caption, *box.values, *box.lines)),
        "lines": [f"{source.file}:{source.line}" for source in box.sources],
        "group": box.is_folded,
    }


def _geometry(placed: PlacedRegion, path: str) -> Iterator[tuple[str, Any]]:
    """Where everything is in each region, from where its arrangement begins, by its path."""
    side, top = placed.origin
    yield (
        path,
        {
            "origin": placed.origin,
            "least": placed.least,
            "lanes": placed.lanes,
            "content": placed.content,
            "boxes": [
                [*map(_tenths, (b.x - side, b.y - top, b.width, b.height, *b.closed))]
                for b in placed.boxes
            ],
            "wires": [
                {
                    "from": wire.edge.source,
                    "to": wire.edge.target,
                    "route": [_tenths(z) for x, y in wire.route for z in (x - side, y - top)],
                }
                for wire in placed.wires
            ],
        },
    )
    for number, box in enumerate(placed.boxes):
        for inner, region in enumerate(box.regions):
            yield from _geometry(region, f"{path}{'.' if path else ''}{number}.{inner}")


def _tenths(value: float) -> float:
    return round(value, 1)


def _json(data: Any) -> str:
    """JSON that can stand in a script element: no text in it ends that."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _colours() -> str:
    """The colours of the page itself, in light and dark."""
    dark = f"@media (prefers-color-scheme: dark) {{ :root {_variables(DARK)} }}"
    return f":root {_variables(LIGHT)}\n{dark}"


def _variables(theme: Theme) -> str:
    colours = {
        "surface": theme.surface,
        "region": theme.region,
        "ink": theme.ink,
        "muted": theme.muted,
        "line": theme.wire + "66",
        "accent": theme.accent,
    }
    return "{ " + "; ".join(f"--{name}: {colour}" for name, colour in colours.items()) + " }"
