"""The examples in docs/ print what the pages say.

A block of Python is run; what it prints must be the block of text that follows, if one does. The
blocks of a page share their names. Each is a file ``example.py`` of its own to error messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(p for p in DOCS.glob("*.md") if "```python\n" in p.read_text("utf-8"))

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```$)?", re.M | re.S
)


def examples(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line, code, and what it prints."""
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        yield line, block["code"], block["printed"] or ""


def test_there_are_pages_with_examples() -> None:
    assert "control_flow.md" in [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "example"}
    for line, code, printed in examples(page):
        exec(compile(code, "example.py", "exec"), names)
        assert capsys.readouterr().out == printed, f"{page.name}:{line}"
