"""What tests import in scripts, as text, exists: most such tests need a GPU, and run seldom."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FROM = re.compile(r"^ *from ((?:lowering|tracegraph|tests)[\w.]*) import ([\w, ]+)$", re.M)
IMPORT = re.compile(r"^ *import ((?:lowering|tracegraph|tests)[\w.]*)$", re.M)


def exists(module: str, name: str) -> bool:
    return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize(
    "folder", ["tests/codegen", "tests/gpu", "tests/plan", "tests/unit", "benchmarks"]
)
def test_what_scripts_import_exists(folder: str) -> None:
    missing = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text("utf-8")
        for module in IMPORT.findall(text):
            missing += [] if find_spec(module) else [f"{path.name}: {module}"]
        for module, names in FROM.findall(text):
            for name in re.findall(r"\w+", re.sub(r" as \w+", "", names)):
                missing += [] if exists(module, name) else [f"{path.name}: {module}.{name}"]
    assert not missing
