"""The stages over the real lowering, on the host."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lowering
import tracegraph as tg
from tests.helpers.processes import end_of
from tracegraph import errors

F5 = tg.ArrayType("float64", (5,))
WEAK = tg.ArrayType("float64", (), True)


def halve_until_small(x: Any, tolerance: Any) -> Any:
    def is_large(carry: Any) -> Any:
        return (carry[0] ** 2).sum() > tolerance

    def halve(carry: Any) -> Any:
        return carry[0] * 0.5, carry[1] + 1

    y, steps = tg.while_loop(is_large, halve, (x, 0))
    return {
        "y": tg.cond(steps > 3, lambda v: v + 1, lambda v: v - 1, y),
        "steps": steps,
        "kind": tg.switch(steps, [lambda: 10, lambda: 20, lambda: 30]),
    }


@pytest.fixture(scope="module")
def lowered() -> Any:
    return tg.jit(halve_until_small, device="host").lower(F5, WEAK)


@pytest.mark.parametrize("tolerance", [1e-3, 100.0, 2.0])
def test_jitted_equals_eager(tolerance: float) -> None:
    x = np.arange(5.0)
    got = tg.jit(halve_until_small, device="host")(x, tolerance)
    want = halve_until_small(x, tolerance)
    np.testing.assert_array_equal(got["y"], want["y"])
    assert int(got["steps"]) == want["steps"]
    assert int(got["kind"]) == want["kind"]
    np.testing.assert_array_equal(x, np.arange(5.0))


def test_builds_once_for_all_values_and_arrays() -> None:
    f = tg.jit(halve_until_small, device="host")
    f(np.arange(5.0), 1e-3)
    f(np.arange(10.0)[::2], 0.5)
    f(tg.asarray(np.zeros(5)), 1.0)
    stats = f.stats()
    assert (stats["traces"], stats["builds"], stats["launches"]) == (1, 1, 3)
    assert stats["retraces"] == ()


def test_results_alias_nothing() -> None:
    x = tg.asarray(np.arange(3.0))
    f = tg.jit(lambda x: (x, x, x[1:]), device="host")
    first, second = f(x), f(x)
    arrays = [np.asarray(a) for a in (x, *first, *second)]
    for i, a in enumerate(arrays):
        assert not any(np.shares_memory(a, b) for b in arrays[i + 1 :])


def test_memory_by_purpose(lowered: Any) -> None:
    memory = lowered.memory
    assert memory["arguments"] == 5 * 8 + 8
    assert memory["outputs"] == 5 * 8 + 8 + 8
    assert memory["scratch"] == lowered.plan.arena_bytes
    assert lowered.bytes == sum(memory.values())
    table = np.arange(100.0)
    holding = tg.jit(lambda i: tg.numpy.asarray(table)[i])
    assert holding.lower(tg.ArrayType("int64")).memory["constants"] == 800


def test_explain_has_a_row_for_every_loop_and_branch(lowered: Any) -> None:
    lines = lowered.explain().splitlines()
    assert re.fullmatch(r"halve_until_small: \d+ nodes, 3 of them conditional", lines[0])
    assert lines[1].split() == ["line", "construct", "steps", "schedule", "nodes", "why"]
    assert sorted(line.split()[1] for line in lines[2:5]) == ["cond", "switch", "while_loop"]
    first = halve_until_small.__code__.co_firstlineno
    assert f"test_stages.py:{first + 7}  while_loop" in lowered.explain()


def test_explain_without_control_flow() -> None:
    text = tg.jit(lambda x: x + 1).lower(F5).explain().partition("\n")[0]
    assert re.fullmatch(r".*: 1 nodes, 0 of them conditional", text)


def test_dot_has_every_node_and_a_cluster_for_every_body(lowered: Any) -> None:
    dot = lowered.dot()
    assert dot.startswith('digraph "halve_until_small" {')
    assert dot.count("{") == dot.count("}")
    assert dot.count("subgraph cluster_") == 1 + 2 + 3
    for i in range(len(lowered.nodes)):
        assert f"  n{i} [label=" in dot
    for i, j in lowered.edges:
        assert f"  n{i} -> n{j};" in dot


def test_source_needs_no_gpu() -> None:
    lowered = tg.jit(lambda x: x + 1, device="cuda").lower(F5)
    assert "__global__" in lowered.source


def test_native_code_is_shown_with_its_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_HOST", "native")
    lowered = tg.jit(lambda x: x.sum(), device="host").lower(F5)
    assert "lambda_k0: one point: fold over i0 < 5, unrolled" in lowered.explain()
    assert "define internal i64 @plan(" in lowered.source


def test_compiled_runs_and_counts(lowered: Any) -> None:
    compiled = lowered.compile()
    got = compiled(np.arange(5.0), 1e-3)
    np.testing.assert_array_equal(got["y"], halve_until_small(np.arange(5.0), 1e-3)["y"])
    assert compiled.plan is lowered.plan
    assert compiled.stats()["launches"] == 1
    with pytest.raises(errors.ArgumentTypesError, match=r"x: f64\[5\] -> f64\[6\]"):
        compiled(np.arange(6.0), 1e-3)
    compiled.close()
    with pytest.raises(RuntimeError):
        compiled(np.arange(5.0), 1e-3)


def test_the_repr_of_a_stage_is_a_line(lowered: Any) -> None:
    assert repr(lowered.traced) == (
        "<Traced halve_until_small(f64[5], ~f64[]) -> (~i64[], ~i64[], f64[5]): 11 operations, for "
        "host>"
    )
    assert repr(lowered) == f"<Lowered for host: {lowered.plan!r}>"
    compiled = lowered.compile()
    assert repr(compiled) == f"<Compiled for host: {lowered.plan!r}>"
    assert str(compiled) == str(lowered)
    compiled.close()
    assert repr(compiled) == str(compiled) == "<Compiled halve_until_small, closed>"


def test_unknown_device_is_named() -> None:
    with pytest.raises(ValueError, match=r"'tpu'.*'host', 'cuda'"):
        tg.jit(lambda x: x, device="tpu")(1.0)
    with pytest.raises(ValueError, match="'cuda:x'"):
        tg.jit(lambda x: x, device="cuda:x")(1.0)


def test_device_memory_is_no_argument_of_a_host_function() -> None:
    elsewhere = SimpleNamespace(
        __cuda_array_interface__={"typestr": "<f8", "shape": (5,), "data": (0, False), "version": 3}
    )
    f = tg.jit(lambda state: state["v"], device="host")
    with pytest.raises(errors.UnsupportedArgumentError, match=r"state\['v'\].*device memory"):
        f({"v": elsewhere})


def test_third_party_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(device: str) -> Any:
        made.append(device)
        return lowering.backend("host")

    point = SimpleNamespace(name="mine", load=lambda: make)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    assert lowering.backend("mine:3") is lowering.backend("host")
    assert made == ["mine:3"]


# ---- the package ----


def test_versions_agree() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert tg.__version__ == lowering.TRACEGRAPH_VERSION == project["version"]


@pytest.mark.parametrize(
    ("stranger", "fact"),
    [("", "of another project"), ("TRACEGRAPH_VERSION = '0.0.7'", r"of version 0\.0\.7")],
)
def test_a_strangers_lowering_is_refused(tmp_path: Path, stranger: str, fact: str) -> None:
    (tmp_path / "lowering.py").write_text(stranger)
    root = str(Path(__file__).parents[3])
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {root!r}]\n"
        "import tracegraph\n"
        "tracegraph.jit(lambda x: x)(1.0)\n"
    )
    exit_code, _, errors = end_of(code)
    assert exit_code != 0
    assert re.search(rf"ImportError: .*{fact}", errors)


def test_import_loads_neither_cuda_nor_lowering() -> None:
    code = (
        "import sys, tracegraph\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules} & "
        "{'cuda', 'nvmath', 'lowering', 'scipy', 'torch', 'cupy'}))"
    )
    assert end_of(code) == (0, "\n", "")


def test_public_names_exist() -> None:
    assert sorted(tg.__all__) == sorted(set(tg.__all__))
    assert all(hasattr(tg, name) for name in tg.__all__)
