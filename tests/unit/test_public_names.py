"""The face of the package: what `dir` shows, and what importing it loads."""

from __future__ import annotations

import tracegraph
from tests.helpers.processes import end_of


def test_dir_shows_the_public_names_only() -> None:
    assert dir(tracegraph) == sorted(tracegraph.__all__)
    assert not {"ir", "staging", "arrays", "annotations"} & set(dir(tracegraph))


def test_every_public_name_is_there() -> None:
    for name in tracegraph.__all__:
        assert getattr(tracegraph, name) is not None


def test_importing_the_package_loads_no_optional_dependency() -> None:
    optional = ("tqdm", "cuda", "nvmath", "scipy")
    code = f"import sys, tracegraph; print([m for m in {optional} if m in sys.modules])"
    assert end_of(code) == (0, "[]\n", "")
