"""Pictures, to the letter, and what they hold."""

from __future__ import annotations

import re
from typing import ClassVar
from xml.etree import ElementTree

import numpy as np
import pytest

from lowering.plan.nodes import Graph, Node
from tests.pages.pictures import GOLDEN, PICTURES, launched_plan, picture, plan, program
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Edge
from tracegraph.inspection.palette import DARK, LIGHT, Theme, Tone
from tracegraph.inspection.svg import HOTTEST, svg
from tracegraph.ir.record import record, replace
from tracegraph.user_source import Source

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_those_kept(name: str) -> None:
    wanted = (GOLDEN / name).read_text("utf-8")
    assert picture(name) == wanted, "to keep the new ones: python -m tests.pages.pictures"


def test_every_file_kept_is_a_picture() -> None:
    assert sorted(path.name for path in GOLDEN.glob("*.svg")) == sorted(PICTURES)


def labels(text: str) -> list[str]:
    """The names of all boxes."""
    groups = ElementTree.fromstring(text).iter(f"{SVG}g")
    return [group.get("aria-label", "") for group in groups if group.get("data-box")]


def test_a_program_shows_types_lines_and_regions() -> None:
    found = labels(picture("program.svg"))
    assert "x: f64[3]" in found
    assert "constant, c0: f64[3]" in found
    assert any(re.fullmatch(r"multiply \w+ 0.5, \w+: f64\[3\], pictures.py:\d+", f) for f in found)
    regions = re.findall('data-region="[^"]*"', picture("program.svg"))
    assert len(regions) == 4


def test_a_program_has_the_users_lines_in_its_tooltips() -> None:
    text = picture("program.svg")
    assert "in halve: return state[0] * 0.5, state[1] + 1</title>" in text


def test_a_plan_says_what_kernels_fuse_and_how_loops_run() -> None:
    found = labels(picture("plan.svg"))
    assert found[3] == (
        "kernel k0_sin_multiply, map [4, 6]: sin, multiply, reduce [] over [4, 6] by add, "
        "solver.py:12"
    )
    assert "loop, while, while_loop: WHILE node, at most 100 steps, solver.py:14" in found
    assert "loop, while, fori_loop: one kernel, 10 steps, solver.py:12" in found
    persistent = "kernel k5_fori_loop, 8 blocks of 256 threads"
    scheduled = "fori_loop: one kernel, 10 steps"
    assert f"loop in one kernel, {persistent}, {scheduled}, solver.py:12" in found
    product = "product, matmul 1 x (4, 6) @ (6, 4)"
    assert f"{product}, memset, 2 kernel nodes, solver.py:12" in found
    assert "copy scratch[0] to output[0], solver.py:12" in found


def test_a_plan_shows_what_a_launch_does_for_arguments_and_memory() -> None:
    boxes, edges = (launched_plan().diagram().region.boxes, launched_plan().diagram().region.edges)
    titles = [box.title for box in boxes]
    loading = ["load 1 small argument", "load 2 addresses"]
    assert titles[:3] == ["allocate 4,608 B", *loading]
    assert titles[-1] == "free 4,608 B"
    assert labels(picture("plan.svg"))[:3] == [
        "allocation, allocate 4,608 B",
        "kernel, load 1 small argument, input[0], solver.py:12",
        "kernel, load 2 addresses, input[0], output[0], solver.py:14, solver.py:12",
    ]
    why = [box.facts().get("why") for box in boxes]
    assert why[0] == "allocates 4,608 B of scratch for this launch"
    assert why[1] == "passes 1 small argument by value: input[0]"
    reading = {edge.target for edge in edges if edge.source == 2}
    assert {titles[target] for target in reading} == {"while", "if / else", "switch"}
    assert plan().diagram().region.boxes[0].title == boxes[3].title, "the work has none of it"


def test_kinds_differ_in_colour_and_have_styles_in_light_and_dark() -> None:
    text = picture("plan.svg")
    tones = set(re.findall(r'class="box (\w+)"', text))
    assert tones == {"compute", "library", "loop", "persistent", "branch", "move"}
    for theme in (LIGHT, DARK):
        assert len({theme.tones[tone] for tone in theme.tones}) == len(theme.tones)
        for tone in tones:
            assert theme.tones[tone].fill in text


def test_facts_of_nodes_and_operations() -> None:
    kernel, product, loop, persistent, *_ = plan().diagram().region.boxes
    facts = kernel.facts()
    assert facts["writes"] == "scratch[0]: f64[4,6]\nscratch[1]: f64[]"
    assert facts["text"].startswith("kernel solve_k0_sin_multiply\n  map [4, 6]")
    assert facts["bytes read and written"] == "584"
    assert product.facts()["floating-point operations"] == "192"
    assert loop.facts()["why"] == "takes any body"
    assert persistent.facts()["why"] == "small state"
    operation = program().diagram().region.boxes[-2]
    assert operation.facts()["what it does"]
    assert operation.facts()["operands"].endswith("c0: f64[3]")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_lines_have_contrast(theme: Theme) -> None:
    """As WCAG 2.2 wants it: 4.5 for text (1.4.3), 3 for what else matters (1.4.11)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    def contrast(one: str, other: str) -> float:
        dark, light = sorted((luminance(one), luminance(other)))
        return (light + 0.05) / (dark + 0.05)

    pairs = [(theme.muted, theme.region), (theme.muted, theme.surface)]
    for fill, stroke in theme.tones.values():
        pairs += [(stroke, fill), (theme.ink, fill), (theme.muted, fill)]
    for fill, _ in theme.tones.values():
        parts = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (fill, theme.accent)]
        mixed = [round(a + HOTTEST * (b - a)) for a, b in zip(*parts, strict=True)]
        pairs.append((theme.ink, "#" + "".join([f"{part:02x}" for part in mixed])))
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []
    assert contrast(theme.wire, theme.surface) >= 3
    assert contrast(theme.accent, theme.surface) >= 3


@record
class Beacon(Node):
    """A kind of node that no file of the package names."""

    kind: ClassVar[str] = "beacon"
    tone: ClassVar[Tone] = "event"
    sources: tuple[Source, ...] = (Source("harbour.py", 3, "enter"),)

    @property
    def noun(self) -> str:
        return "a signal"

    @property
    def contents(self) -> tuple[str, ...]:
        return ("two long, one short",)


def test_a_new_kind_of_node_has_a_picture_by_its_answers() -> None:
    text = svg(replace(plan(), graph=Graph((Beacon(),), frozenset())).diagram())
    assert labels(text) == ["signal, beacon, two long, one short, harbour.py:3"]
    assert 'class="box event"' in text
    assert repr(Beacon()) == "<Beacon beacon, harbour.py:3>"


def test_text_of_any_kind_is_escaped() -> None:
    nasty = '</title><script>alert("&")</script>\x00\ud800'
    box = Box(nasty, (nasty,), nasty, tooltip=nasty, values=(nasty,))
    region = DiagramRegion(nasty, (box, box), (Edge(0, 1),))
    text = svg(Diagram(nasty, nasty, DiagramRegion("", (Box("o", regions=(region,)),), ())))
    root = ElementTree.fromstring(text.encode())
    assert not list(root.iter(f"{SVG}script"))
    assert "\x00" not in text


def test_long_texts_are_cut_where_they_are_drawn_and_not_in_names() -> None:
    box = Box("x" * 500, ("a  b\nc", *["line"] * 20))
    root = ElementTree.fromstring(svg(Diagram("long", "", DiagramRegion("", (box,), ()))))
    drawn = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert max(map(len, drawn)) < 60
    assert drawn[1] == "a b c"
    assert drawn[-1] == "… 14 more"
    assert "x" * 500 in labels(svg(Diagram("long", "", DiagramRegion("", (box,), ()))))[0]
    assert float(root.get("width", "0")) < 600
