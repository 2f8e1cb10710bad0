"""The cells of notebooks in docs/tutorials, which the site runs and tests run.

A notebook is text in the format of MyST-NB: prose, and cells of Python in fences with the name
``{code-cell}``. Cells with the tag ``plot`` need matplotlib and are run by the site alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = sorted(p for p in FOLDER.glob("*.md") if "{code-cell}" in p.read_text("utf-8"))

CELL = re.compile(
    r"^```\{code-cell\} python\n(?P<options>(?::[^\n]*\n)*)\n?(?P<code>.*?)^```$", re.M | re.S
)


def cells(text: str) -> Iterator[tuple[int, str]]:
    """Line and code of each cell that is not a plot."""
    for cell in CELL.finditer(text):
        if "plot" not in cell["options"]:
            yield text.count("\n", 0, cell.start("code")) + 1, cell["code"]
