"""What notebooks ask of programs and stages, on the host."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tracegraph as tg
from tracegraph.inspection.diagram import Box, Diagram, DiagramRegion
from tracegraph.inspection.drawable import AUTOMATIC_BOXES, Drawable

MIMES = ["text/plain", "image/svg+xml", "text/html"]


def stages() -> dict[str, Any]:
    """One of each kind of thing that can be drawn."""

    def f(x: Any) -> Any:
        return tg.fori_loop(0, 5, lambda i, c: c * 2.0, x) + 1.0

    jitted = tg.jit(f, device="host")
    lowered = jitted.lower(np.ones(3))
    return {
        "program": tg.make_program(f)(np.ones(3)),
        "traced": jitted.trace(np.ones(3)),
        "lowered": lowered,
        "compiled": lowered.compile(),
        "plan": lowered.plan,
        **{f"node {i}": node for i, node in enumerate(lowered.nodes)},
    }


@pytest.mark.parametrize("name", stages())
def test_everything_has_a_text_a_picture_and_a_frame(name: str) -> None:
    shown = stages()[name]
    bundle = shown._repr_mimebundle_()
    assert list(bundle) == MIMES
    assert bundle["text/plain"] == repr(shown)
    ElementTree.fromstring(bundle["image/svg+xml"])
    assert bundle["image/svg+xml"] in bundle["text/html"]


@pytest.mark.parametrize(
    ("include", "exclude", "kept"),
    [
        (None, None, MIMES),
        (["text/plain"], None, ["text/plain"]),
        ({"image/svg+xml", "image/png"}, (), ["image/svg+xml"]),
        (None, {"text/html", "text/plain"}, ["image/svg+xml"]),
        (["text/plain", "text/html"], ["text/html"], ["text/plain"]),
        ([], None, []),
    ],
)
def test_include_and_exclude_are_honoured(include: Any, exclude: Any, kept: list[str]) -> None:
    shown = stages()["program"]
    assert list(shown._repr_mimebundle_(include=include, exclude=exclude)) == kept


def test_a_huge_picture_is_text_that_says_how_to_see_it() -> None:
    boxes = tuple([Box("sin")] * (AUTOMATIC_BOXES + 1))
    huge = Broken(Diagram("huge", "", DiagramRegion("", boxes, ())))
    bundle = huge._repr_mimebundle_()
    assert list(bundle) == ["text/plain"]
    line, note = bundle["text/plain"].split("\n")
    assert line == repr(huge)
    assert note.startswith(f"{AUTOMATIC_BOXES + 1} boxes are not drawn here: ")
    assert "tracegraph.show(x, depth=1)" in note
    assert huge._repr_mimebundle_(exclude=["text/plain"]) == {}


def test_a_long_program_is_drawn_with_what_repeats_in_one_box() -> None:
    def f(x: Any) -> Any:
        for _ in range(AUTOMATIC_BOXES):
            x = np.sin(x) + 1.0
        return x

    program = tg.make_program(f)(1.0)
    drawn = program.diagram()
    assert (drawn.drawn, drawn.size > 2 * AUTOMATIC_BOXES) == (3, True)
    assert [box.title for box in drawn.region.boxes][1] == f"2 operations ×{AUTOMATIC_BOXES}"
    picture = program._repr_mimebundle_()["image/svg+xml"]
    assert picture.count("data-box=") == 3


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Broken(Drawable):
    """An object that cannot be drawn, and may have no repr, either."""

    def __init__(self, diagram: Any, error: Exception | None = None) -> None:
        self.drawn, self.error = diagram, error

    def diagram(self) -> Diagram:
        if isinstance(self.drawn, Exception):
            raise self.drawn
        drawn: Diagram = self.drawn
        return drawn

    def __repr__(self) -> str:
        if self.error is not None:
            raise self.error
        return "<broken>"


class BadText:
    def __str__(self) -> str:
        raise RuntimeError("torn")


def test_what_cannot_be_drawn_is_text_that_says_why() -> None:
    def bundle(*args: Any) -> dict[str, str]:
        return Broken(*args)._repr_mimebundle_()

    assert bundle(ValueError("torn")) == {"text/plain": "<broken>\nno picture: ValueError: torn"}
    said = "<broken>\nno picture: Unspeakable: its message cannot be shown"
    assert bundle(Unspeakable()) == {"text/plain": said}
    assert "no picture: AttributeError" in bundle(None)["text/plain"]
    box: Any = Box(BadText())  # type: ignore[arg-type]
    drawn = Diagram("bad", "1 box", DiagramRegion("", (box,), ()))
    assert list(bundle(drawn)) == ["text/plain"]
    fine = Diagram("fine", "1 box", DiagramRegion("", (Box("sin"),), ()))
    without = bundle(fine, Unspeakable())
    assert list(without) == MIMES
    assert without["text/plain"] == (
        "<Broken without a repr: Unspeakable: its message cannot be shown>"
    )


def test_a_program_that_is_not_well_formed_is_drawn() -> None:
    program = stages()["program"]
    cut = type(program)("cut", type(program.body)((), program.body.eqns, program.body.results))
    assert "undefined" in cut._repr_mimebundle_()["image/svg+xml"]
