"""Docstrings, as autodoc reads them, become reStructuredText: code and results are marked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docs.site import public

SUMMARY = re.compile(r"^(Shapes?|Dtypes?|Units?): ")
"""How docstrings begin what they say about results."""

VARIABLE = re.compile(r"^~?_?[A-Z]+(_co)?$")
"""The name of a type variable."""

CODE = re.compile(r"(?<![`\w:])(`{1,2})([^`]+)\1(?!`)")
"""Code within a text, between one or two backticks."""


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


def without_variable(*args: Any) -> tuple[str, str] | None:
    """A signature without a result that is a type variable; none for what users do not call."""
    name, signature, result = args[2], *args[-2:]
    if name in public.MADE_BY_OTHERS:
        return "", ""
    if result is not None and VARIABLE.match(result):
        return signature, ""
    return None


def setup(app: Any) -> None:
    """Read docstrings as they are written, before napoleon does."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-process-signature", without_variable)
