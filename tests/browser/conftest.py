"""A browser, and pages in it that must load nothing and complain of nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tracegraph as tg

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    reason = "needs the extra `browser`"
    api = pytest.importorskip("playwright.sync_api", reason=reason)
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
