"""The page in a real browser: it loads from a file, and clicks, keys and searches do what they say.

Needs the extra `browser` and Chromium, Playwright's own or one on the path.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph as tg
from tests.pages.pictures import plan, program

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def box(page: Any, title: str) -> Any:
    """The box with a title, by its text."""
    return page.locator(".box > .title", has_text=title).first


def view(page: Any) -> list[float]:
    return [float(number) for number in page.locator("svg").get_attribute("viewBox").split()]


def shown_boxes(page: Any) -> int:
    return int(page.locator(".box:visible").count())


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
    assert "uses of b: ~i64[]" in page.locator("#panel").inner_text()
    page.locator("#panel button", has_text="greater b 3").click()
    assert page.locator("#panel h2").inner_text() == "greater b 3"
    assert page.locator(".chosen > .title").all_text_contents() == ["greater b 3"]


def test_hovering_marks_the_uses(open_page: Open) -> None:
    page = open_page(program())
    box(page, "tolerance: ~f64[]").hover()
    assert page.locator(".box.used > .title").all_text_contents() == ["while_loop x 0 tolerance"]
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
    took = page.evaluate("performance.getEntriesByName('ready')[0].startTime / 1000")
    print(f"written and shown in {time.perf_counter() - start:.2f} s, shown in {took:.2f} s")
    assert shown_boxes(page) == 4
    assert page.locator(".box").count() > len(shown.body.eqns)
    search = page.locator("#query")
    search.fill("sin f64[8]")
    assert page.locator("#count").inner_text() == "666 found"
    search.press("Enter")
    assert page.locator("#panel h2").inner_text().startswith("sin")
    assert shown_boxes(page) > 40


def network(params: Any, x: Any) -> Any:
    for layer in params:
        x = np.tanh(x @ layer["w"] + layer["b"])
    return tg.fori_loop(0, 40, lambda i, v: np.sort(np.sin(v)) + i, x, unroll=4)


def lowered() -> Any:
    params = [{"w": np.ones((8, 8)), "b": np.ones(8)} for _ in range(12)]
    return tg.jit(network, device="cuda").lower(params, np.ones(8))


def overlaps(page: Any) -> list[str]:
    """Boxes that are outside of their region, or over another one."""
    found: list[str] = page.evaluate(
        """() => {
          const wrong = [];
          const shown = [...boxes].filter(([path]) => isShown(path));
          const rects = shown.map(([path, box]) =>
            [path, box.querySelector(":scope > .body").getBoundingClientRect()]);
          const regionOf = (path) => path.slice(0, Math.max(path.lastIndexOf("."), 0));
          for (const [path, a] of rects) {
            const outer = regions.get(regionOf(path))?.querySelector(":scope > .ground");
            const frame = (outer ?? svg.querySelector(".surface")).getBoundingClientRect();
            if (a.left < frame.left - 1 || a.right > frame.right + 1
                || a.top < frame.top - 1 || a.bottom > frame.bottom + 1) wrong.push(path);
            for (const [other, b] of rects) {
              if (other <= path || regionOf(other) !== regionOf(path)) continue;
              if (a.left < b.right - 1 && b.left < a.right - 1
                  && a.top < b.bottom - 1 && b.top < a.bottom - 1) wrong.push(`${path}/${other}`);
            }
          }
          return wrong;
        }"""
    )
    return found


def ends_apart(page: Any) -> list[str]:
    """Arrows that do not lead from their box to their box."""
    found: list[str] = page.evaluate(
        """() => [...svg.querySelectorAll(".wire")].filter((wire) => {
          const { from, to } = wire.dataset;
          if (!isShown(from)) return false;
          const [source, target] = [from, to].map((path) =>
            boxes.get(path).querySelector(":scope > .body").getBoundingClientRect());
          const line = wire.getAttribute("d").match(/^M(\\S+) (\\S+)/).slice(1).map(Number);
          const matrix = wire.getScreenCTM();
          const start = new DOMPoint(...line).matrixTransform(matrix);
          const tip = wire.getAttribute("d").match(/L(\\S+) ([^L]+)L[^L]*$/).slice(1).map(Number);
          const end = new DOMPoint(...tip).matrixTransform(matrix);
          return Math.abs(start.y - source.bottom) > 1 || start.x < source.left - 1
            || start.x > source.right + 1 || Math.abs(end.y - target.top) > 1
            || end.x < target.left - 1 || end.x > target.right + 1;
        }).map((wire) => `${wire.dataset.from} to ${wire.dataset.to}`)"""
    )
    return found


@pytest.mark.parametrize("make", [plan, program, lowered], ids=["plan", "program", "network"])
def test_boxes_open_and_close_without_overlaps(open_page: Open, make: Callable[[], Any]) -> None:
    page = open_page(make())
    written = page.evaluate("[arranged('').width, arranged('').height]")
    size = [float(page.locator("svg").get_attribute(name)) for name in ("width", "height")]
    assert written == pytest.approx(size, abs=0.3)
    count = page.evaluate("opened.size")
    assert count
    states = np.random.default_rng(0).random((12, count)) < 0.5
    for state in (np.zeros(count, bool), *states, np.ones(count, bool)):
        page.evaluate(
            "s => { [...opened.keys()].forEach((p, k) => opened.set(p, s[k])); placeAll(); }",
            state.tolist(),
        )
        assert overlaps(page) == []
        assert ends_apart(page) == []


def test_copies_open_on_a_click_and_close_by_their_mark(open_page: Open) -> None:
    page = open_page(lowered())
    page.locator("#fit").click()
    before = shown_boxes(page)
    box(page, "body ×4").click()
    assert shown_boxes(page) > before + 4
    group = page.locator('.box:has(> .title:text-is("body ×4"))')
    assert group.get_attribute("aria-expanded") == "true"
    group.locator("> .toggle").click()
    assert shown_boxes(page) == before
    group.focus()
    page.keyboard.press("o")
    assert shown_boxes(page) > before + 4


def test_a_line_leads_to_its_boxes_and_a_box_to_its_lines(open_page: Open) -> None:
    page = open_page(lowered())
    row = page.locator("#listing tr.has", has_text="np.tanh")
    row.click()
    panel = page.locator("#panel").inner_text()
    assert "x = np.tanh" in panel
    assert "matmul" in panel, "the operations of the program"
    assert page.locator(".box.found").count() > 5
    page.locator("#panel .uses button").nth(3).click()
    assert page.locator("#listing tr.current .code").inner_text().strip().startswith("x = np.tanh")
    assert page.locator(".box.chosen > .title").text_content().startswith("kernel k2")


def test_search_by_name_type_and_line(open_page: Open) -> None:
    page = open_page(program())
    page.keyboard.press("/")
    page.keyboard.type("multiply f64[3]")
    assert page.locator("#count").inner_text() == "1 found"
    page.keyboard.press("Enter")
    assert page.locator("#panel h2").inner_text().startswith("multiply")
    page.keyboard.press("Control+a")
    page.keyboard.type("multiply f32[3]")
    assert page.locator("#count").inner_text() == "0 found"
    page.keyboard.press("Escape")
    assert page.locator("#count").inner_text() == ""
    assert page.locator(".found").count() == 0


def test_arrows_follow_values(open_page: Open) -> None:
    page = open_page(program())
    page.locator('[data-box="0"]').focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#panel h2").inner_text().startswith("while_loop")
    page.keyboard.press("ArrowUp")
    assert page.locator("#panel h2").inner_text() == "x: f64[3]"
    page.keyboard.press("ArrowRight")
    assert page.locator("#panel h2").inner_text() == "tolerance: ~f64[]"
    before = view(page)
    page.keyboard.press("+")
    assert view(page)[2] < before[2]
    page.keyboard.press("f")
    assert view(page)[2:] == page.evaluate("[all.width, all.height]")
