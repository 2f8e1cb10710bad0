"""The examples on the device: each checks itself, and fails where its results are wrong."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("*.py"))
    if "Mesh(" not in path.read_text()  # meshes of the host, or of what needs the extra mesh
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_ends_well_on_the_device(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "sklearn" in path.read_text() and importlib.util.find_spec("sklearn") is None:
        pytest.skip("compares itself with scikit-learn")
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "cuda")
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    run = subprocess.run(
        [sys.executable, str(path)], check=False, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "graph nodes" in run.stdout
