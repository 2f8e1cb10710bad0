"""Profiles on a device: each node has its runs, and a time that its work explains."""

import json

import numpy as np
import pytest

import tracegraph
from tracegraph.inspection.diagram import boxes_in


def program(x, y):
    def step(v):
        return np.sort(v * 0.5)

    small = tracegraph.while_loop(lambda v: np.max(np.abs(v)) > 1e-3, step, y)
    return np.exp(x) + x, x.sum(0), small


def test_times_are_those_of_the_work():
    x = np.ones((8192, 8192), np.float32)
    y = np.linspace(0, 1, 20_000)
    compiled = tracegraph.jit(program, device="cuda").lower(x, y).compile()
    given = [tracegraph.asarray(each, device="cuda") for each in (x, y)]
    profile = compiled.profile(*given)
    print(profile)
    sorts = [node for node in profile.nodes if node.title.startswith("sort")]
    steps = int(np.ceil(np.log2(1 / 1e-3)))
    assert sum(node.runs for node in sorts) == steps
    large = [node for node in profile.nodes if node.work.required >= 1 << 28]
    assert large
    for node in large:
        assert 0.3 < node.part < 1.3, str(profile)
    assert profile.seconds > 200e-6
    assert profile.call_seconds < 3 * profile.seconds


def test_results_are_not_touched_by_a_profile():
    x = np.ones((8192, 8192), np.float32)
    y = np.linspace(0, 1, 20_000)
    jitted = tracegraph.jit(program, device="cuda")
    before = [np.asarray(each) for each in jitted(x, y)]
    jitted.lower(x, y).compile().profile(x, y)
    for one, other in zip(jitted(x, y), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_profile_is_drawn_and_written(tmp_path):
    x = np.ones((512, 512), np.float32)
    profile = tracegraph.jit(program, device="cuda").profile(x, np.linspace(0, 1, 20_000))
    boxes = [box for box in boxes_in(profile.diagram().region) if not box.is_folded]
    assert sum(box.seconds or 0 for box in boxes) == pytest.approx(profile.seconds)
    assert tracegraph.show(profile, tmp_path / "profile.html") is not None
    events = json.loads(profile.write_trace(tmp_path / "trace.json").read_text("utf-8"))
    assert sum(e["ph"] == "X" for e in events["traceEvents"]) == len(profile.nodes)
