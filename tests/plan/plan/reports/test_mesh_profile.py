"""Profiles of sharded functions: the times of each device."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.mesh import MeshBackend
from lowering.cuda.libraries import nccl
from lowering.plan.clocks import with_clocks
from lowering.testing.recording_backend import RecordingBackend
from tracegraph import Mesh, PartitionSpec, shard

P = PartitionSpec


def steps(x: Any) -> Any:
    """A loop of three sums."""
    return tracegraph.fori_loop(
        0, 3, lambda _, x: x + tracegraph.psum(x, "x"), x, schedule="conditional"
    )


def test_each_device_has_a_table(tmp_path: Path) -> None:
    mesh = Mesh((2, 2), ("x", "y"), device="host")
    mapped = tracegraph.jit(shard(steps, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")))
    profile = mapped.profile(np.ones((4, 4)))
    assert list(profile.devices) == [0, 1, 2, 3]
    for own in profile.devices.values():
        runs = {node.title: node.runs for node in own.nodes}
        assert {n for title, n in runs.items() if "all-reduce sum over x" in title} == {3.0}
    assert "device 3: steps:" in str(profile)
    assert repr(profile).startswith("<profile of steps on 4 devices: ")
    assert profile.seconds == max(own.seconds for own in profile.devices.values())
    events = json.loads(profile.write_trace(tmp_path / "steps.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2, 3, 4}


def test_gpus_return_their_clocks_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl, "_library", SimpleNamespace)
    mesh = Mesh(2, "x", device="cuda")
    mapped = shard(steps, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    clocked, timed = with_clocks(tracegraph.jit(mapped).lower(np.ones(4)).plan)
    executable = MeshBackend(mesh, [RecordingBackend() for _ in range(2)]).compile(clocked)
    _, times = executable([np.ones(4)])
    assert len(times.blocks) == 2
    assert times.type.shape == (2 * times.blocks[0].type.shape[0],)
    assert max(each.own for each in timed) < times.blocks[0].type.shape[0] // 2
