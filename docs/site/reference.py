"""Pages of the reference, written before the build reads its files: one entry a public name.

Signatures and texts are those of the code; `public` says which names are on which page.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.site import public

SOURCE = Path(__file__).parents[1] / "reference" / "names"
"""Where the pages are written; Git ignores it."""

SUMMARY = re.compile(r"^(Shapes?|Dtypes?|Units?): ", re.M)
"""How docstrings begin what they say about results."""


def entry(module: str, name: str) -> str:
    """The directive that documents a name."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        return f".. autoclass:: {module}.{name}\n   :members:\n"
    return f".. autofunction:: {module}.{name}\n"


def titled(title: str) -> str:
    """The title of a page."""
    return f"{title}\n{'=' * len(title)}\n\n"


def text_of(page: public.Page) -> str:
    """A page of names, as reStructuredText."""
    entries = "\n".join(entry(page.module, name) for name in page.names)
    return titled(page.title) + (f"{page.intro}\n\n" if page.intro else "") + entries


def returned() -> str:
    """The page of classes that users meet as results."""
    parts = [titled("What jit returns"), "What these hold and do, stage by stage.\n\n"]
    for path, members in public.RETURNED.items():
        parts.append(f".. autoclass:: {path}()\n   :members: {', '.join(members)}\n\n")
    return "".join(parts)


def write(_: Any) -> None:
    """Write all pages; a page that is as it was keeps its time."""
    SOURCE.mkdir(exist_ok=True)
    texts = {page.file: text_of(page) for page in public.pages()} | {"returned": returned()}
    for path in SOURCE.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = SOURCE / f"{name}.rst"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def with_fields(lines: list[str]) -> Iterator[str]:
    """A docstring whose lines `Shape: …` and `Dtype: …` are fields, each with what continues it."""
    inside = False
    for line in lines:
        if SUMMARY.match(line):
            if not inside:
                yield ""
            name, _, text = line.partition(": ")
            yield f":{name}: {text}"
            inside = True
        elif inside and line.strip():
            yield f"    {line.strip()}"
        else:
            inside = False
            yield line


CODE = re.compile(r"(?<![`\w:])(`{1,2})([^`]+)\1(?!`)")
"""Code within a text, between one or two backticks."""


def inline(paragraph: str) -> str:
    """A paragraph with its code marked as in reStructuredText, where `|` has no meaning."""
    parts = []
    end = 0
    for code in CODE.finditer(paragraph):
        parts.append(paragraph[end : code.start()].replace("|", "\\|"))
        parts.append(f"``{code[2]}``")
        end = code.end()
        if paragraph[end : end + 1].isalnum():
            parts.append("\\ ")  # what follows a literal is punctuation or an escaped space
    return "".join(parts) + paragraph[end:].replace("|", "\\|")


def with_literals(lines: list[str]) -> list[str]:
    """A docstring in which the code of paragraphs is literal; examples stay as they are."""
    paragraphs = "\n".join(lines).split("\n\n")
    return "\n\n".join(
        each if each.lstrip().startswith((">>> ", "    ")) else inline(each) for each in paragraphs
    ).split("\n")


def process(*args: Any) -> None:
    """Make reStructuredText of a docstring, the last argument, before napoleon reads it."""
    lines = args[-1]
    lines[:] = list(with_fields(with_literals(lines)))


def setup(app: Any) -> None:
    """Write the pages before Sphinx looks for files, and read docstrings as they are written."""
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", process, priority=400)
