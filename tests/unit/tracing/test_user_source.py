"""The source lines of equations and errors are the user's own, not those of installed packages."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph.errors import TracerBoolError
from tracegraph.user_source import Kind, kinds

LIBRARY = """
import functools

import numpy as np


def doubled(x):
    return x * 2


def applied(function, x):
    return functools.partial(function)(doubled(x))


def branching(x):
    return x if x > 0 else -x
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package that is installed, by the name of its folder."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("some_library")
    del sys.modules["some_library"]


def sources(function: Any, *args: Any) -> set[tuple[str, str]]:
    """File and function of each equation, bodies included."""
    program = tracegraph.make_program(function)(*args)
    found, regions = set(), [program.body]
    while regions:
        for eqn in regions.pop().eqns:
            assert eqn.source is not None
            found.add((Path(eqn.source.file).name, eqn.source.function))
            regions += eqn.regions
    return found


def test_a_line_is_that_of_the_user_who_calls_a_library(library: ModuleType) -> None:
    def solve(x: Any) -> Any:
        return library.doubled(x)

    assert sources(solve, 1.0) == {(Path(__file__).name, "solve")}


def test_of_user_code_that_a_library_calls_it_is_the_innermost(library: ModuleType) -> None:
    def tripled(x: Any) -> Any:
        return x * 3

    def solve(x: Any) -> Any:
        return library.applied(tripled, x)

    assert sources(solve, 1.0) == {(Path(__file__).name, name) for name in ("solve", "tripled")}


def test_bodies_of_loops_from_a_library_belong_to_the_line_of_the_loop(library: ModuleType) -> None:
    def solve(x: Any) -> Any:
        return tracegraph.fori_loop(0, 3, lambda i, y: library.doubled(y), x)

    assert {file for file, _ in sources(solve, 1.0)} == {Path(__file__).name}


def test_a_library_that_is_traced_by_itself_keeps_its_lines(library: ModuleType) -> None:
    assert sources(library.doubled, 1.0) == {("some_library.py", "doubled")}
    assert sources(functools.partial(library.applied, library.doubled), 1.0) == {
        ("some_library.py", "doubled")
    }


def test_errors_name_the_line_of_the_user(library: ModuleType) -> None:
    def solve(x: Any) -> Any:
        return library.branching(x)

    with pytest.raises(TracerBoolError, match=r"at test_user_source.py:\d+, in solve"):
        tracegraph.jit(solve, device="host")(1.0)
    with pytest.raises(TracerBoolError, match=r"at some_library.py:\d+, in branching"):
        tracegraph.jit(library.branching, device="host")(1.0)


def test_files_are_known_by_where_they_are() -> None:
    assert kinds[__file__] is Kind.USER
    assert kinds["<stdin>"] is Kind.USER
    assert kinds["/tmp/ipykernel_1/1.py"] is Kind.USER
    assert kinds[np.ma.__file__] is Kind.SUPPORT
    assert kinds[functools.__file__] is Kind.SUPPORT
    assert kinds["<frozen importlib._bootstrap>"] is Kind.SUPPORT
    assert kinds[pytest.__file__] is Kind.INSTALLED
    assert kinds[tracegraph.jit.__code__.co_filename] is Kind.OWN
    assert kinds["<tracegraph: calls of a jitted function>"] is Kind.OWN
    assert kinds[importlib.import_module("lowering.lower").__file__ or ""] is Kind.OWN
