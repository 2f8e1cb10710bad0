"""The inputs of a Plan, `input[0]`, by the names of the arguments, in pictures and reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tracegraph.inspection.argument_paths import short_names
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Facts
from tracegraph.inspection.tables import Report

Rename = Callable[[str], str]


def renaming(paths: Sequence[str]) -> Rename:
    """What puts the names of arguments in the place of `input[0]`, `input[1]`, … in a text.

    >>> renaming(["x", "state['v']"])("copy input[1] to output[0]")
    "copy state['v'] to output[0]"
    """
    names = short_names(paths)

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return names[number] if number < len(names) else found[0]

    return lambda text: re.sub(r"\binput\[(\d+)\]", name, text)


def named_report(report: Report, rename: Rename, details: bool) -> Report:
    """A report with other names in its texts."""
    return Report.of([section.renamed(rename) for section in report.sections], details)


def named_diagram(diagram: Diagram, rename: Rename) -> Diagram:
    """A picture with other names in its texts."""
    return replace(diagram, region=_region(diagram.region, rename))


def _region(region: DiagramRegion, rename: Rename) -> DiagramRegion:
    return replace(region, boxes=tuple([_box(box, rename) for box in region.boxes]))


def _box(box: Box, rename: Rename) -> Box:
    def facts() -> Facts:
        found: Mapping[str, str] = box.facts()
        return {name: rename(text) for name, text in found.items()}

    return replace(
        box,
        title=rename(box.title),
        lines=tuple(map(rename, box.lines)),
        tooltip=rename(box.tooltip),
        regions=tuple([_region(inner, rename) for inner in box.regions]),
        facts=facts,
    )
