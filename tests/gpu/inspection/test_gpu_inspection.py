"""What is compiled for the device can be looked at, also once it is closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import tracegraph


def solver(x: Any, matrix: Any) -> Any:
    def step(i: Any, v: Any) -> Any:
        return tracegraph.cond(i % 2 == 0, np.sin, lambda w: matrix @ w, v)

    return tracegraph.fori_loop(0, 6, step, x)


def test_what_runs_is_drawn(tmp_path: Path) -> None:
    arguments = np.ones(64), np.eye(64)
    compiled = tracegraph.jit(solver, device="cuda").lower(*arguments).compile()
    compiled(*arguments)
    assert repr(compiled).startswith("<Compiled for cuda:0: <Plan solver: ")
    assert str(compiled) == str(compiled.plan)
    bundle = compiled._repr_mimebundle_()
    picture = ElementTree.fromstring(bundle["image/svg+xml"])
    drawn = [group.get("data-box") for group in picture.iter() if group.get("data-box")]
    assert len(drawn) == compiled.diagram().size
    page = tracegraph.show(compiled, tmp_path / "solver.html")
    assert page is not None
    assert "solver" in page.read_text("utf-8")
    compiled.close()
    assert repr(compiled) == "<Compiled solver, closed>"
    assert compiled._repr_mimebundle_()["text/plain"].startswith("<Compiled solver, closed>")
