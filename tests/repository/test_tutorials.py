"""Each notebook in docs/tutorials runs, and ends with an assertion that holds."""

from __future__ import annotations

import ast
import linecache
import os
from pathlib import Path
from typing import Any

import pytest

from lowering.host.choice import VARIABLE, why_not_native
from tests.pages import notebooks


@pytest.mark.parametrize("page", notebooks.PAGES, ids=lambda page: page.stem)
def test_a_notebook_runs_and_ends_with_an_assertion(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its loops would be slow in the interpreter of plans."""
    monkeypatch.setenv(VARIABLE, os.environ[VARIABLE] if why_not_native() else "native")
    names: dict[str, Any] = {"__name__": "example"}
    code = ""
    for line, code in notebooks.cells(page.read_text("utf-8")):
        name = f"{page.name}:{line}"  # messages quote expressions, as of a file
        monkeypatch.setitem(linecache.cache, name, (len(code), None, code.splitlines(True), name))
        exec(compile(code, name, "exec", dont_inherit=True), names)
    assert isinstance(ast.parse(code).body[-1], ast.Assert)
