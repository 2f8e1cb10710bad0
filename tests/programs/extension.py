"""The library call and the node kind of docs/extending.md, added from outside of the packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.cuda.graph.emit import EMITTERS
from lowering.cuda.libraries.library_calls import CAPTURED
from lowering.planning.rules import RULES
from tracegraph.ir import op as registry

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"
TABLES: tuple[dict[Any, Any], ...] = (registry._REGISTRY, RULES, EMITTERS, CAPTURED)
MATRIX = np.arange(12.0).reshape(4, 3)


@contextmanager
def extended() -> Iterator[Any]:
    """The names that two sections of the page define; what they enter in tables goes again."""
    text = DOCS.read_text("utf-8")
    start = text.index("## An op lowered to a library call")
    sections = text[start : text.index("## A loop schedule")]
    before = [dict(table) for table in TABLES]
    names: dict[str, Any] = {"__name__": "extension"}
    try:
        for code in re.findall(r"```python\n(.*?)```", sections, re.DOTALL):
            exec(compile(code, "extension.py", "exec", dont_inherit=True), names)
        yield SimpleNamespace(**names)
    finally:
        for table, entries in zip(TABLES, before, strict=True):
            table.clear()
            table.update(entries)


def once(ext: Any) -> Callable[[Any], Any]:
    return lambda x: ext.apply(ext.gram, x.T * 2) + 1


def in_a_loop(ext: Any) -> Callable[[Any], Any]:
    def gram(x: Any) -> Any:
        return ext.apply(ext.gram, x) / 100

    return lambda x: tracegraph.fori_loop(0, 4, lambda i, c: gram(c), gram(x))


def in_a_branch(ext: Any) -> Callable[[Any], Any]:
    return lambda x: tracegraph.cond(x.sum() > 0, lambda x: ext.apply(ext.gram, x), lambda x: -x, x)


def blanked(ext: Any) -> Callable[[Any], Any]:
    return lambda x: ext.apply(ext.blank, x).at[1].set(x[0])


def blanked_in_a_loop(ext: Any) -> Callable[[Any], Any]:
    return lambda x: tracegraph.fori_loop(
        0, 12, lambda i, c: ext.apply(ext.blank, c).at[i % 3].set(c[i % 3] + 1), x
    )


PROGRAMS = pytest.mark.parametrize(
    ("program", "x"),
    [
        (once, MATRIX),
        (in_a_loop, MATRIX),
        (in_a_branch, np.eye(3)),
        (blanked, MATRIX),
        (blanked_in_a_loop, MATRIX),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
