"""The site: nothing public is missing in the reference, and the programs of errors raise them.

The site itself is built by the command of the README.
"""

from __future__ import annotations

import doctest
import importlib
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from docs.site import errors_page, public, reference
from tracegraph import errors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text("utf-8")


def test_every_public_name_is_on_one_page() -> None:
    found = Counter(f"{page.module}.{name}" for page in public.pages() for name in page.names)
    wanted = {
        f"{module}.{name}"
        for module in public.modules()
        if module != "tracegraph.errors"
        for name in public.documented(module)
    }
    assert found == Counter(wanted), "docs/site/public.py says which name is where"
    assert {"tracegraph.jit", "tracegraph.numpy.linalg.qr", "tracegraph.tree.map"} < wanted


@cache
def examples_of(module: str) -> frozenset[str]:
    """What has examples in a module, as `test_doctests` finds and runs them."""
    tests = doctest.DocTestFinder().find(importlib.import_module(module), module)
    return frozenset(test.name for test in tests if test.examples)


def test_every_public_name_has_an_example_that_is_run() -> None:
    without = []
    for page in public.pages():
        for name in page.names:
            value = getattr(importlib.import_module(page.module), name)
            path = f"{value.__module__}.{value.__name__}"
            found = examples_of(value.__module__)
            if path not in found and not any(each.startswith(f"{path}.") for each in found):
                without.append(f"{page.module}.{name}")
    assert not without


def test_constants_and_types_have_a_page() -> None:
    page = (DOCS / "reference" / "numpy_constants.md").read_text("utf-8")
    listed = re.findall(r"`(\w+)`", page.partition("```python")[0])
    assert set(listed) - {"None", "ml_dtypes"} == public.OF_NUMPY


def test_what_is_said_of_results_exists() -> None:
    for path, members in public.RETURNED.items():
        module, _, name = path.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        fields = getattr(found, "__dataclass_fields__", ())
        missing = [each for each in members if not (hasattr(found, each) or each in fields)]
        assert not missing, path


def test_the_first_page_of_the_reference_links_all_others() -> None:
    texts = reference.texts()
    linked = set(re.findall(r"^   (names/[\w.]+)$", texts["index"] + texts["numpy"], re.M))
    assert linked == {name for name in texts if name.startswith("names/")}


@pytest.mark.parametrize("family", errors_page.FAMILIES)
def test_programs_raise_their_errors_and_what_is_written_instead_runs(family: str) -> None:
    imports, entries = errors_page.entries(family)
    for entry in entries:
        names = errors_page.names_of(imports)
        assert errors_page.message(entry, names), entry.name
        if entry.runs:
            assert entry.instead.strip(), entry.name
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                errors_page.run(entry.instead, names)


def test_every_error_has_a_program() -> None:
    entries = [e for family in errors_page.FAMILIES for e in errors_page.entries(family)[1]]
    names = Counter(entry.name for entry in entries)
    assert set(names.values()) == {1}
    for error in errors_page.classes():
        below = errors_page.subclasses(error)
        assert error.__name__ in names or below, f"{error.__name__} needs one in error_programs"


def test_every_page_is_in_the_navigation() -> None:
    for index in (DOCS / "index.md", DOCS / "tutorials" / "index.md"):
        trees = re.findall(r"^```\{toctree\}\n(.*?)^```", index.read_text("utf-8"), re.M | re.S)
        listed = {line for tree in trees for line in tree.splitlines() if line[:1].isalpha()}
        pages = {path.stem for path in index.parent.glob("*.md")} - {"index"}
        assert pages <= listed, index
        missing = {page for page in listed - pages if "/" not in page}
        assert not missing, index


def test_the_readme_is_one_screen() -> None:
    assert len(README.splitlines()) <= 80


LACKS: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "x[x > 0]": (lambda x: x[x > 0], errors.BooleanMaskError),
    "np.unique(x)": (np.unique, errors.ShapeDependentError),
    "np.linalg.eig": (np.linalg.eig, errors.UnsupportedByTracerError),
    "np.roots": (lambda x: np.roots(x[0]), errors.UnsupportedByTracerError),
}
"""What the README says that is not done, as code of it."""


@pytest.mark.parametrize("code", LACKS)
def test_what_the_readme_says_is_not_done_raises(code: str) -> None:
    function, error = LACKS[code]
    assert code in README.partition("## What it does not do")[2]
    with pytest.raises(error):
        tracegraph.jit(function)(np.ones((3, 3)))


def test_python_and_extras_that_pages_name_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"Python ≥ {project['requires-python'].removeprefix('>=')}" in README
    texts = [README, *(page.read_text("utf-8") for page in DOCS.glob("**/*.md"))]
    named = re.findall(r"(?:'\.|tracegraph)\[([\w,]+)\]'", "\n".join(texts))
    extras = {extra for each in named for extra in each.split(",")}
    assert {"cu13", "docs"} < extras <= set(project["optional-dependencies"])
