"""The examples in docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp

ROOT = Path(__file__).parents[2]

NAMES = {"np": np, "tnp": tnp, "tracegraph": tracegraph}
"""What examples use without importing it."""

FOR_OTHERS = ("tracegraph.jax.", "tracegraph.torch.")
"""Packages that need the library of their name."""


def modules() -> Iterator[str]:
    """The modules of both packages that have examples."""
    for package in ("tracegraph", "lowering"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if ">>> " in file.read_text("utf-8"):
                parts = file.relative_to(ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("name", list(modules()))
def test_examples(name: str) -> None:
    if name.startswith(FOR_OTHERS):
        pytest.importorskip(name.split(".")[1])
    module = importlib.import_module(name)
    results = doctest.testmod(module, extraglobs=NAMES)
    assert results.failed == 0
