"""The page in a real browser: it loads from a file, and clicks and hovers do what they say.

Needs the extra `browser` and Chromium, Playwright's own or one on the path.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from tests.pages.pictures import plan, program

api = pytest.importorskip("playwright.sync_api", reason="needs the extra `browser`")

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        path = own if Path(own).exists() else shutil.which("chromium") or shutil.which("chrome")
        if path is None:
            pytest.skip("needs Chromium")
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0
        options = ["--no-sandbox"] if as_root else []
        running = playwright.chromium.launch(executable_path=path, args=options)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Shows a thing in the browser; at the end, nothing was complained of or asked for."""
    complaints: list[str] = []
    contexts = []

    def open_(shown: Any, scheme: str = "light") -> Any:
        path = tg.show(shown, tmp_path / "page.html")
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": 1300, "height": 900}, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(f"file://{path}")
        assert complaints == [f"file://{path}"]
        complaints.clear()
        page.wait_for_selector("body[data-ready]")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def box(page: Any, title: str) -> Any:
    """The box with a title, by its text."""
    return page.locator(".box > .title", has_text=title).first


def view(page: Any) -> list[float]:
    return [float(number) for number in page.locator("svg").get_attribute("viewBox").split()]


def test_a_click_shows_what_is_known(open_page: Open) -> None:
    page = open_page(plan())
    assert "Click a box" in page.locator("#panel").inner_text()
    box(page, "kernel k0_sin_multiply").click()
    panel = page.locator("#panel").inner_text()
    assert "solver.py:12, in solve" in panel
    assert "sin(input[0][i0, i1])" in panel
    assert "bytes read and written\n584" in panel
    box(page, "while").click()
    panel = page.locator("#panel").inner_text()
    assert "while_loop: WHILE node, at most 100 steps" in panel
    assert "takes any body" in panel


def test_the_panel_leads_to_the_uses_of_a_value(open_page: Open) -> None:
    page = open_page(program())
    box(page, "while_loop").click()
    assert "uses of d: ~i64[]" in page.locator("#panel").inner_text()
    page.locator("#panel button", has_text="greater d 3").click()
    assert page.locator("#panel h2").inner_text() == "greater d 3"
    assert page.locator(".chosen > .title").all_text_contents() == ["greater d 3"]


def test_hovering_marks_the_uses(open_page: Open) -> None:
    page = open_page(program())
    box(page, "b: ~f64[]").hover()
    assert page.locator(".box.used > .title").all_text_contents() == ["while_loop a 0 b"]
    assert page.locator(".wire.used").count() == 1
    box(page, "while_loop").hover()
    assert page.locator(".wire.used").count() == 3
    page.locator("h1").hover()
    assert page.locator(".used").count() == 0


def test_a_region_zooms_in_and_back(open_page: Open) -> None:
    page = open_page(program())
    page.locator("#fit").click()
    whole = view(page)
    label = page.locator(".region > .label", has_text="body").first
    label.click()
    near = view(page)
    assert near[2] < whole[2]
    assert near[3] < whole[3]
    label.click()
    assert view(page) == whole
    label.click()
    page.keyboard.press("Escape")
    assert view(page) == whole


def test_buttons_wheel_and_drag_move_the_view(open_page: Open) -> None:
    page = open_page(program())
    start = view(page)
    page.locator("#closer").click()
    near = view(page)
    assert near[2] < start[2]
    page.mouse.move(400, 400)
    page.mouse.wheel(0, 200)
    page.wait_for_function(
        "width => document.querySelector('svg').viewBox.baseVal.width > width", arg=near[2]
    )
    before = view(page)
    page.mouse.down()
    page.mouse.move(450, 430)
    page.mouse.up()
    after = view(page)
    assert after[0] < before[0]
    assert after[1] < before[1]
    assert after[2:] == pytest.approx(before[2:], rel=1e-5)  # viewBox has float32
    assert "Click a box" in page.locator("#panel").inner_text()  # a drag is no click


def test_boxes_are_reached_by_keys_and_have_names(open_page: Open) -> None:
    page = open_page(plan())
    first = page.get_by_role("img", name="kernel k0_sin_multiply")
    assert first.count() == 1
    first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#panel h2").inner_text() == "kernel k0_sin_multiply"
    group = page.get_by_role("group", name="loop in one kernel, kernel k5_fori_loop")
    assert group.count() == 1


def test_a_frame_that_is_shown_later_has_its_view(browser: Any, tmp_path: Path) -> None:
    """As in a notebook: in a sandbox, and hidden until the cell is on the screen."""
    written = tg.show(plan(), tmp_path / "plan.html")
    assert written is not None
    frame = escape(written.read_text("utf-8"))
    outer = tmp_path / "notebook.html"
    style = "display: none; width: 1100px; height: 600px"
    outer.write_text(
        f'<iframe style="{style}" sandbox="allow-scripts" srcdoc="{frame}"></iframe>', "utf-8"
    )
    page = browser.new_page()
    page.goto(f"file://{outer}")
    page.wait_for_timeout(100)
    assert page.frames[1].locator("body[data-ready]").count() == 0
    page.evaluate("document.querySelector('iframe').style.display = 'block'")
    page.frames[1].wait_for_selector("body[data-ready]")
    assert view(page.frames[1])[2] > 0
    box(page.frames[1], "kernel k0_sin_multiply").click()
    assert "solver.py:12" in page.frames[1].locator("#panel").inner_text()
    page.close()


def test_light_and_dark(open_page: Open) -> None:
    def colours(page: Any) -> list[str]:
        fill = "e => getComputedStyle(e).fill"
        shown = (".surface", ".compute > .body", ".compute > .title")
        return [page.locator(each).first.evaluate(fill) for each in shown]

    light, dark = colours(open_page(plan())), colours(open_page(plan(), "dark"))
    assert light == ["rgb(255, 255, 255)", "rgb(231, 240, 253)", "rgb(29, 35, 48)"]
    assert dark == ["rgb(20, 23, 30)", "rgb(26, 42, 66)", "rgb(231, 234, 240)"]


def test_texts_fit_into_their_boxes(open_page: Open) -> None:
    page = open_page(plan())
    too_wide = page.evaluate(
        """() => [...document.querySelectorAll(".box > text")].filter((text) => {
          const body = text.parentElement.querySelector(":scope > .body").getBBox();
          const box = text.getBBox();
          return box.x + box.width > body.width || box.y + box.height > body.height;
        }).map((text) => text.textContent)"""
    )
    assert too_wide == []


def test_a_thousand_operations_are_shown_whole(open_page: Open) -> None:
    def long(x: Any) -> Any:
        values = [x]
        for number in range(1000):
            values.append(np.sin(values[-1]) if number % 3 else values[-1] + values[number // 2])
        return values[-1]

    shown = tg.make_program(long)(np.ones(8))
    start = time.perf_counter()
    page = open_page(shown)
    print(f"{len(shown.body.eqns)} operations in {time.perf_counter() - start:.2f} s")
    assert page.locator(".box").count() == len(shown.body.eqns) + 2
    box(page, "sin").click()
    assert page.locator("#panel h2").inner_text().startswith("sin")
