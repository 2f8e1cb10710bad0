"""Pictures, to the letter, and what they hold."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from pictures import GOLDEN, PICTURES, picture, plan, program

from tracegraph.inspection.diagram import Box, Diagram, Edge, Region
from tracegraph.inspection.palette import DARK, LIGHT
from tracegraph.inspection.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_those_kept(name: str) -> None:
    wanted = (GOLDEN / name).read_text("utf-8")
    assert picture(name) == wanted, "to keep the new ones: PYTHONPATH=. python tests/pictures.py"


def test_every_file_kept_is_a_picture() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(PICTURES)


def labels(text: str) -> list[str]:
    """The names of all boxes."""
    groups = ElementTree.fromstring(text).iter(f"{SVG}g")
    return [group.get("aria-label", "") for group in groups if group.get("data-box")]


def test_a_program_shows_types_lines_and_regions() -> None:
    found = labels(picture("program.svg"))
    assert "a: f64[3]" in found
    assert "constant, c0: f64[3]" in found
    assert any(re.fullmatch(r"multiply \w+ 0.5, \w+: f64\[3\], pictures.py:\d+", f) for f in found)
    regions = re.findall('data-region="[^"]*"', picture("program.svg"))
    assert len(regions) == 4


def test_a_program_has_the_users_lines_in_its_tooltips() -> None:
    text = picture("program.svg")
    assert "in halve: return state[0] * 0.5, state[1] + 1</title>" in text


def test_a_plan_says_what_kernels_fuse_and_how_loops_run() -> None:
    found = labels(picture("plan.svg"))
    assert found[0] == (
        "kernel k0_sin_multiply, map [4, 6]: sin, multiply, reduce [] over [4, 6] by add, "
        "solver.py:12"
    )
    assert "loop, while, while_loop: WHILE node, at most 100 steps, solver.py:14" in found
    assert "loop, while, fori_loop: one kernel, 10 steps, solver.py:12" in found
    persistent = "kernel k5_fori_loop, 8 blocks of 256 threads"
    assert f"loop in one kernel, {persistent}, solver.py:12" in found
    assert "product, matmul 1 x (4, 6) @ (6, 4), solver.py:12" in found
    assert "copy scratch[0] to output[0], solver.py:12" in found


def test_kinds_differ_in_colour_and_have_styles_in_light_and_dark() -> None:
    text = picture("plan.svg")
    tones = set(re.findall(r'class="box (\w+)"', text))
    assert tones == {"compute", "library", "loop", "persistent", "branch", "move"}
    for theme in (LIGHT, DARK):
        assert len({theme.tones[tone] for tone in theme.tones}) == len(theme.tones)
        for tone in tones:
            assert theme.tones[tone].fill in text


def test_facts_of_nodes_and_operations() -> None:
    kernel, product, loop, *_ = plan().diagram().region.boxes
    facts = kernel.facts()
    assert facts["writes"] == "scratch[0]: f64[4,6]\nscratch[1]: f64[]"
    assert facts["text"].startswith("kernel solve_k0_sin_multiply\n  map [4, 6]")
    assert facts["bytes read and written"] == "584"
    assert product.facts()["floating-point operations"] == "192"
    assert loop.facts()["why"] == "takes any body"
    operation = program().diagram().region.boxes[-2]
    assert operation.facts()["what it does"]
    assert operation.facts()["operands"].endswith("c0: f64[3]")


def test_text_of_any_kind_is_escaped() -> None:
    nasty = '</title><script>alert("&")</script>\x00\ud800'
    box = Box(nasty, (nasty,), nasty, tooltip=nasty, values=(nasty,))
    region = Region(nasty, (box, box), (Edge(0, 1),))
    text = svg(Diagram(nasty, nasty, Region("", (Box("o", regions=(region,)),), ())))
    root = ElementTree.fromstring(text.encode())
    assert not list(root.iter(f"{SVG}script"))
    assert "\x00" not in text


def test_long_texts_are_cut_where_they_are_drawn_and_not_in_names() -> None:
    box = Box("x" * 500, ("a  b\nc", *["line"] * 20))
    root = ElementTree.fromstring(svg(Diagram("long", "", Region("", (box,), ()))))
    drawn = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert max(map(len, drawn)) < 60
    assert drawn[1] == "a b c"
    assert drawn[-1] == "… 14 more"
    assert "x" * 500 in labels(svg(Diagram("long", "", Region("", (box,), ()))))[0]
    assert float(root.get("width", "0")) < 600
