"""One HTML file of a diagram: the picture, a side panel, and the script that fills it.

It asks for nothing from anywhere: a content security policy forbids that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion
from tracegraph.inspection.palette import DARK, LIGHT, Theme
from tracegraph.inspection.svg import quoted, svg

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

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
<div id="panel" aria-live="polite"><p class="hint">Click a box for what is known of it, and a \
region to zoom in. Hover a box or an arrow to see where a value is used. Escape shows all.</p></div>
<details><summary>The whole text</summary><pre class="text">{text}</pre></details>
</aside>
</main>
<script type="application/json" id="facts">{facts}</script>
<script>
{script}
</script>
</body>
</html>
"""


def page(diagram: Diagram, text: str) -> str:
    """The page of a diagram, with the text of what it shows."""
    return _PAGE.format(
        policy=_POLICY,
        title=quoted(diagram.title),
        summary=quoted(diagram.summary),
        styles="\n".join((_colours(), _part("page.css"))),
        picture=svg(diagram),
        text=quoted(text),
        facts=_json(dict(_facts(diagram.region, ""))),
        script=_part("page.js"),
    )


def _part(name: str) -> str:
    return files("tracegraph.inspection").joinpath(name).read_text("utf-8").rstrip()


def _facts(region: DiagramRegion, path: str) -> Iterator[tuple[str, Any]]:
    """What the panel says of each box, by its path in the picture."""
    for number, box in enumerate(region.boxes):
        yield f"{path}{number}", _said(box)
        for inner, below in enumerate(box.regions):
            yield from _facts(below, f"{path}{number}.{inner}.")


def _said(box: Box) -> Any:
    return {"title": box.title, "values": box.values, "facts": dict(box.facts())}


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
