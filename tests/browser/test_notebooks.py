"""What notebooks show: cells are executed by Jupyter's client, and their outputs are in a browser.

Needs nbclient and ipykernel besides the browser.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

CELLS = """\
import numpy as np
import tracegraph
#%%
@tracegraph.jit(device="cuda")
def settle(params, x):
    for layer in params:
        x = np.tanh(x @ layer["w"]) + layer["b"]

    def step(v):
        return 0.5 * (v + np.cos(v))

    return tracegraph.while_loop(lambda v: np.max(np.abs(v)) > 0.9, step, x)

params = [{"w": np.ones((8, 8)), "b": np.full(8, k)} for k in range(20)]
lowered = settle.lower(params, np.ones(8))
#%%
settle.trace(params, np.ones(8))
#%%
lowered.explain()
#%%
on_host = settle.on_device("host")
result = on_host(params, np.ones(8))
on_host.programs()
#%%
on_host.last_call()
#%%
on_host.profile(params, np.ones(8))
#%%
tracegraph.show(lowered)
#%%
tracegraph.show(on_host.profile(params, np.ones(8)), static=True)
#%%
with tracegraph.debug.nans():
    tracegraph.jit(lambda x: np.log(x), device="host")(-1.0)
#%%
settle.trace(params, np.ones(9))
"""


@pytest.fixture(scope="module")
def notebook() -> Any:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS.split("#%%\n")]
    made = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(made, timeout=120, allow_errors=True, kernel_name="python3").execute()
    return made


def outputs(notebook: Any, cell: int) -> list[Any]:
    found: list[Any] = notebook.cells[cell].outputs
    return found


def html_of(notebook: Any) -> Iterator[str]:
    """The outputs as a notebook shows them, the richest form of each."""
    for cell in notebook.cells:
        yield f"<pre>{escape(cell.source)}</pre>"
        for output in cell.outputs:
            data = output.get("data", {})
            if output.output_type == "error":
                yield f"<pre>{escape(output.ename)}: {escape(output.evalue)}</pre>"
            elif "text/html" in data or "image/svg+xml" in data:
                yield data.get("text/html") or data["image/svg+xml"]
            else:
                yield f"<pre>{escape(data.get('text/plain', output.get('text', '')))}</pre>"


def test_lines_are_those_of_cells(notebook: Any) -> None:
    (explained,) = outputs(notebook, 3)
    assert "In[2]:9" in explained.data["text/html"]
    (picture,) = outputs(notebook, 2)
    assert "In[2]:4" in picture.data["image/svg+xml"]
    (error,) = outputs(notebook, 9)
    assert error.ename == "NonFiniteError"
    assert "log x at In[10]:2, in <lambda> made it" in error.evalue
    (error,) = outputs(notebook, 10)
    assert "at In[2]:4, in settle" in error.evalue
    assert not any("ipykernel" in str(cell.outputs) for cell in notebook.cells[2:7])


def test_outputs_are_shown_without_complaints(notebook: Any, browser: Any, tmp_path: Path) -> None:
    page_file = tmp_path / "notebook.html"
    head = '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    page_file.write_text(head + "\n".join(html_of(notebook)), "utf-8")
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, offline=True)
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message, found=complaints: found.append(message.text))
        page.on("pageerror", lambda error, found=complaints: found.append(str(error)))
        page.goto(f"file://{page_file}")
        page.set_viewport_size({"width": 1200, "height": 900})
        assert page.locator(".tracegraph-report table").count() >= 4
        folded = page.locator(".tracegraph-report details", has_text="all 2").first
        assert not folded.locator("table").is_visible()
        folded.locator("summary").click()
        assert folded.locator("tbody tr").count() > 15
        page.locator("iframe").scroll_into_view_if_needed()  # frames elsewhere do not run
        page.frame_locator("iframe").locator("body[data-ready]").wait_for()
        page.frame_locator("iframe").locator("#fit").click()
        page.frame_locator("iframe").locator(".box > .title", has_text="while").first.click()
        assert "while" in page.frame_locator("iframe").locator("#panel h2").inner_text()
        assert page.locator("svg .heat").count() > 3
        page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True)
        print(tmp_path / f"{scheme}.png")
        assert complaints == []
        context.close()
