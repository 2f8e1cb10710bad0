"""README.md and docs/: their examples run and print what they say, their lists and paths are true.

A block of Python is run; what it prints must be the block of text that follows, if one does. The
blocks of a page share their names. Each is a file ``example.py`` of its own to error messages.
"""

from __future__ import annotations

import linecache
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from benchmarks.rows import callbacks
from tests.pages import figures_page, interop_page, jax_names_page, numpy_page
from tracegraph.cache import settings
from tracegraph.ir import op as registry
from tracegraph.tracing.tracer import Tracer

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PROSE = [README, ROOT / "CHANGELOG.md", *sorted(DOCS.glob("**/*.md"))]
PAGES = [p for p in PROSE[2:] if "```python\n" in p.read_text("utf-8")]

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<printed>.*?)^```$)?", re.M | re.S
)


NEED_A_GPU = (
    *("Transform", "captured_by_cupy", "two_parts"),
    *("captured_by_torch", "captured_by_cuda_core"),
)
"""Examples of interop.md that other libraries are part of, by the first name of their check."""


def examples(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line, code, and what it prints."""
    text = page.read_text("utf-8")
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        yield line, block["code"], block["printed"] or ""


def test_there_are_pages_with_examples() -> None:
    assert "control_flow.md" in [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))  # a page may add ops
    monkeypatch.setattr(
        settings, "chosen", settings.CacheSettings()
    )  # and change where things are kept
    names: dict[str, Any] = {"__name__": "example"}
    for line, code, printed in examples(page):
        lines = code.splitlines(keepends=True)  # messages quote expressions, as of a file
        monkeypatch.setitem(linecache.cache, "example.py", (len(code), None, lines, "example.py"))
        exec(compile(code, "example.py", "exec", dont_inherit=True), names)
        assert capsys.readouterr().out == printed, f"{page.name}:{line}"


def first_example() -> dict[str, Any]:
    """The names that the README's first example defines."""
    _, code, _ = next(examples(README))
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "example.py", "exec", dont_inherit=True), names)
    return names


def test_every_example_of_interop_has_a_check_for_a_gpu() -> None:
    """`tests/gpu/repository/test_gpu_interop_page.py` runs these checks."""
    covered = {name for names in interop_page.CHECKS for name in names}
    assert covered == interop_page.defined()


@pytest.mark.parametrize(
    "covered", [names for names in interop_page.CHECKS if names[0] not in NEED_A_GPU], ids=" ".join
)
def test_checks_for_a_gpu_hold_on_the_host(covered: tuple[str, ...]) -> None:
    interop_page.CHECKS[covered](interop_page.names(), "host")


def test_the_first_example_gives_what_its_comment_says() -> None:
    _, code, _ = next(examples(README))
    *_, last = code.strip().splitlines()
    call, comment = last.split("  # ")
    assert repr(eval(call, first_example())) == comment


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_first_example_ends_for_any_input(dtype: str) -> None:
    newton_sqrt = first_example()["newton_sqrt"]
    info = np.finfo(dtype)
    lowest, highest = np.log([float(info.tiny), float(info.max)])
    exponents = np.random.default_rng(0).uniform(lowest, 0.999 * highest, 10_000)
    special = [0, info.smallest_subnormal, info.tiny, info.eps, 1, 12345.678, info.max, np.inf]
    x = np.concatenate([np.exp(exponents), special]).astype(dtype)
    with tracegraph.time_limit(60):
        root = np.asarray(newton_sqrt(x))
        alone = [np.asarray(newton_sqrt(element)) for element in x[-len(special) :]]
        odd = np.asarray(newton_sqrt(np.array([np.nan, -4, -info.max, -np.inf], dtype)))
    assert root.dtype == dtype
    np.testing.assert_allclose(root, np.sqrt(x), rtol=2 * info.eps, atol=info.tiny)
    np.testing.assert_array_equal(alone, root[-len(special) :])
    assert np.isnan(odd[0])


@pytest.mark.parametrize("x", [0, 3, True, 12345.678, [1, 2], np.ones((2, 0))], ids=repr)
def test_the_first_example_takes_numbers_of_any_kind(x: Any) -> None:
    x = np.array(x) if isinstance(x, list) else x
    with tracegraph.time_limit(60):
        root = first_example()["newton_sqrt"](x)
    np.testing.assert_allclose(np.asarray(root), np.sqrt(np.asarray(x, float)), rtol=1e-15)


def listed(marker: str) -> list[str]:
    """The names in the part of docs/numpy.md between a marker and the next ``<!-- end -->``."""
    text = (DOCS / "numpy.md").read_text("utf-8")
    part = text.partition(f"<!-- {marker} -->")[2].partition("<!-- end -->")[0]
    return re.findall(r"`(\w+)`", part)


def public(of: Any) -> set[str]:
    """The functions and methods that something offers under NumPy's names."""
    return {
        name for name in dir(of) if not name.startswith("_") and callable(getattr(of, name, None))
    }


def test_the_page_about_numpy_lists_every_function() -> None:
    import tracegraph.numpy as tnp

    of_types = {"isdtype", "issubdtype"}
    functions = {name for name in public(tnp) if not isinstance(getattr(tnp, name), type)}
    functions = {name for name in functions - of_types if not name.endswith("_")}
    names = listed("functions")
    linalg, fft = names.index("linalg"), names.index("fft")
    assert sorted(names[linalg + 1 : fft]) == sorted(tnp.linalg.__all__)
    assert sorted(names[fft + 1 :]) == sorted(tnp.fft.__all__)
    assert sorted(names[:linalg]) == sorted(functions)


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="other NumPys have others")
def test_the_page_of_numpys_functions_is_that_of_the_code() -> None:
    """`python -m tests.pages.numpy_page` writes it."""
    assert numpy_page.PAGE.read_text("utf-8") == numpy_page.page()


def test_pictures_of_performance_are_those_of_the_figures() -> None:
    """`python -m tests.pages.figures_page` writes them."""
    for name, text in figures_page.pictures().items():
        assert (figures_page.FOLDER / name).read_text("utf-8") == text, name


def test_the_page_of_names_of_jax_is_that_of_the_errors() -> None:
    """`python -m tests.pages.jax_names_page` writes it."""
    assert jax_names_page.PAGE.read_text("utf-8") == jax_names_page.page()


def test_the_page_of_ops_is_that_of_their_records() -> None:
    """`python -m tests.pages.ops_page` writes it. A new process has no ops that tests register."""
    script = "from tests.pages import ops_page; print(ops_page.page(), end='')"
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
    )
    assert (DOCS / "ops.md").read_text("utf-8") == found.stdout.decode("utf-8")


def test_the_page_about_numpy_lists_every_method() -> None:
    both = public(Tracer) & public(tracegraph.Array) & public(np.ndarray)
    values = {"item", "tobytes", "tolist"}  # need the elements
    writing = {"fill", "partition", "put", "sort"}  # an Array refuses them
    assert sorted(listed("methods")) == sorted(both - values - writing)


def test_the_table_of_what_callbacks_cost_has_the_rows_that_measure_it() -> None:
    text = (DOCS / "callbacks.md").read_text("utf-8")
    listed = re.findall(r"^\| `(callback\w*)` \|", text, re.M)
    assert listed == [row.name for row in callbacks.ROWS]


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_paths_and_links_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    paths = re.findall(r"`((?:tracegraph|lowering|tests|docs|examples)/[\w./]*)`", text)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", re.sub(r"`[^`]*`", "", text))
    missing = [path for path in paths if not (ROOT / path).exists()]
    missing += [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_links_within_pages_name_a_heading() -> None:
    def anchors(page: Path) -> set[str]:
        headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
        return {re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in headings}

    for page in PROSE:
        for path, anchor in re.findall(r"\]\(([\w./]*)#([^)]*)\)", page.read_text("utf-8")):
            target = page.parent / path if path else page
            assert anchor in anchors(target), f"{page.name}: {path}#{anchor}"


def test_the_layout_is_that_of_the_tree() -> None:
    """Every folder in the picture exists; every package folder is in the picture."""
    text = (DOCS / "design.md").read_text("utf-8")
    picture = text[text.index("\ntracegraph/ ") :].partition("```")[0]
    shown: dict[str, set[str]] = {}
    for line in picture.strip().splitlines():
        if not line.startswith(" "):
            package = line.split("/")[0]
            shown[package] = set()
        else:
            shown[package] |= set(re.findall(r"(\w+)/", line[:23]))
    for package, folders in shown.items():
        tree = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
        assert folders == tree - {"testing", "errors"}, package
