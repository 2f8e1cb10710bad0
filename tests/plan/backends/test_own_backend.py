"""A backend from outside, in one file: found by its entry point, planned for by its own Target."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends import registry
from tracegraph import memory

DOCS = Path(__file__).parents[3] / "docs" / "extending.md"


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The backend of docs/extending.md, installed; its module."""
    text = DOCS.read_text().partition("## A backend")[2]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:1]
    (tmp_path / "counting_backend.py").write_text(code)
    info = tmp_path / "counting_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: counting-backend\nVersion: 1.0\n")
    entry = "[tracegraph.backends]\ncounting = counting_backend:CountingBackend\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_made", [])
    import counting_backend  # type: ignore[import-not-found]

    yield counting_backend
    monkeypatch.delitem(sys.modules, "counting_backend")
    registry.backend.cache_clear()


def both(x: Any, y: Any) -> Any:
    return x + 1, y * 2


def test_it_runs_programs(counting: Any) -> None:
    def solve(x: Any) -> Any:
        return tracegraph.while_loop(lambda x: x.sum() < 100, lambda x: x * 2 + 1, x)

    run = tracegraph.jit(solve, device="counting:3")
    np.testing.assert_array_equal(run(np.ones(4)), solve(np.ones(4)))
    run(np.zeros(4))
    backend = registry.backend("counting:3")
    assert type(backend) is counting.CountingBackend
    assert tracegraph.memory_stats("counting:3") == {"launches": 2}


def test_plans_are_made_for_its_target(counting: Any) -> None:
    arguments = np.ones(3), np.ones(4)
    plans = [
        tracegraph.jit(both, device=device).lower(*arguments).plan
        for device in ("host", "counting")
    ]
    assert [len(plan.graph.nodes) for plan in plans] == [1, 2]
    assert registry.target_of("counting").limits.kernel_buffers == 2


def test_it_is_reset_with_the_others_and_inherits_the_rest(counting: Any) -> None:
    run = tracegraph.jit(both, device="counting")
    run(np.ones(3), np.ones(4))
    memory.trim()
    assert tracegraph.Stream("counting").synchronize() is None
    tracegraph.reset()
    assert tracegraph.memory_stats("counting") == {"launches": 0}


def test_the_device_of_the_environment_has_its_full_name(monkeypatch: pytest.MonkeyPatch) -> None:
    find = registry.default_device.__wrapped__
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "cuda")
    assert find() == "cuda:0", "as Arrays name it: else a function has two programs"
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "gpu")
    with pytest.raises(ValueError, match="TRACEGRAPH_DEVICE in the environment: no backend for"):
        find()
