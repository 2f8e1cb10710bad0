"""`show`: files, notebooks, and misuse."""

from __future__ import annotations

import json
import re
import sys
import types
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tracegraph as tg
from tests.pages.pictures import plan, program
from tracegraph import errors
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion, Edge
from tracegraph.inspection.page import page


class Elements(HTMLParser):
    """The elements of a page and their attributes; `text` by the ids of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def facts_of(text: str) -> Any:
    """The facts in a page, by the paths of boxes."""
    found = re.search(r'<script type="application/json" id="facts">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize("shown", [program(), plan(), plan().graph.nodes[2]], ids=repr)
def test_a_page_has_everything_inside(shown: Any, tmp_path: Path) -> None:
    path = tmp_path / "shown.html"
    assert tg.show(shown, path) == path
    text = path.read_text("utf-8")
    for tag, attributes in Elements(text).found:
        assert tag not in ("link", "img", "iframe", "object")
        assert "src" not in attributes
        assert "href" not in attributes
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "@import" not in text
    facts = facts_of(text)
    assert len(facts) == shown.diagram().size
    assert set(facts) == set(re.findall('data-box="([^"]*)"', text))
    whole = re.search(r'<pre class="text">(.*?)</pre></details>', text, re.S)
    assert whole is not None
    assert unescape(whole[1]) == str(shown)


def test_a_page_has_schedules_and_kernel_text(tmp_path: Path) -> None:
    written = tg.show(plan(), tmp_path / "plan.htm")
    assert written is not None
    facts = facts_of(written.read_text("utf-8"))
    assert facts["2"]["facts"]["schedule"] == "while_loop: WHILE node, at most 100 steps"
    assert facts["2"]["facts"]["why"] == "takes any body"
    assert facts["2.0.0"]["facts"]["text"].startswith("kernel solve_k2_sin")
    assert facts["1"]["facts"]["line"] == "solver.py:12, in solve"


def test_no_text_ends_the_script_or_an_element() -> None:
    nasty = "</script></svg><script>alert(1)</script>"
    box = Box(nasty, (nasty,), values=(nasty,), facts=lambda: {nasty: nasty})
    diagram = Diagram(nasty, nasty, DiagramRegion("", (box, box), (Edge(0, 1),)))
    text = page(diagram, nasty)
    assert [tag for tag, _ in Elements(text).found].count("script") == 4
    facts = facts_of(text)["0"]
    assert (facts["title"], facts["values"], facts["facts"]) == (nasty, [nasty], {nasty: nasty})


def test_static_is_an_svg_without_a_script(tmp_path: Path) -> None:
    path = tg.show(plan(), str(tmp_path / "plan.svg"), static=True)
    assert path is not None
    text = path.read_text("utf-8")
    ElementTree.fromstring(text)
    assert "<script" not in text


def test_depth_leaves_out_what_is_inside(tmp_path: Path) -> None:
    def sizes(depth: int | None) -> int:
        path = tg.show(plan(), tmp_path / "plan.html", depth=depth)
        assert path is not None
        return len(facts_of(path.read_text("utf-8")))

    assert sizes(1) == 6
    assert "… 3 inside" in (tmp_path / "plan.html").read_text("utf-8")
    assert sizes(1) < sizes(2) < sizes(3) == sizes(None)


def test_without_a_path_it_is_a_new_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    first, second = tg.show(program()), tg.show(program(), static=True)
    assert first is not None
    assert second is not None
    assert re.fullmatch(r"program-solver-\w+\.html", first.name)
    assert (first.parent, second.suffix) == (tmp_path, ".svg")


class FakeNotebook:
    """IPython, as far as `show` uses it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, shell: object) -> None:
        self.displayed: list[Any] = []
        module, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        module.get_ipython = lambda: shell  # type: ignore[attr-defined]
        display.display = self.display  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, bundle: Any, raw: bool) -> None:
        assert raw
        self.displayed.append(bundle)


def test_a_notebook_displays_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    notebook = FakeNotebook(monkeypatch, types.SimpleNamespace(kernel=object()))
    assert tg.show(program()) is None
    assert tg.show(program(), static=True) is None
    frame, picture = notebook.displayed
    assert frame["text/plain"] == picture["text/plain"] == repr(program())
    ((tag, attributes),) = Elements(frame["text/html"]).found
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts")
    assert facts_of(attributes["srcdoc"] or "")
    ElementTree.fromstring(picture["image/svg+xml"])
    assert tg.show(program(), tmp_path / "program.html") is not None
    assert len(notebook.displayed) == 2


def test_ipython_in_a_terminal_is_no_notebook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    notebook = FakeNotebook(monkeypatch, types.SimpleNamespace())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert tg.show(program()) is not None
    assert notebook.displayed == []


@pytest.mark.parametrize(
    "value", [np.sin, tg.jit(np.sin), np.ones(3), None, "solver"], ids=lambda v: type(v).__name__
)
def test_what_cannot_be_drawn_says_what_can(value: Any) -> None:
    with pytest.raises(errors.NotDrawableError, match=r"got a \w+; .*jitted\.trace\(\*args\)"):
        tg.show(value)


@pytest.mark.parametrize("depth", [0, -1, True, 1.5, "1"])
def test_a_depth_is_a_positive_int(depth: Any) -> None:
    with pytest.raises(errors.ShowOptionError, match=re.escape(f"or None, not {depth!r}")):
        tg.show(program(), depth=depth)


@pytest.mark.parametrize(
    ("name", "static", "message"),
    [
        ("a.svg", False, "must end in .html or .htm, not 'a.svg': it is a page; static=True"),
        ("a.png", False, "must end in .html or .htm, not 'a.png'"),
        ("a", False, "must end in .html or .htm, not 'a'"),
        ("a.html", True, "must end in .svg, not 'a.html': static=True writes the picture alone"),
    ],
)
def test_a_path_has_the_suffix_of_what_is_written(name: str, static: bool, message: str) -> None:
    with pytest.raises(errors.ShowOptionError, match=re.escape(message)):
        tg.show(program(), name, static=static)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"):
        tg.show(program(), tmp_path / "missing" / "program.html")
