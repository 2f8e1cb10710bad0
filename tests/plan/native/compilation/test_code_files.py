"""Object files on disk: found by a second process, and left alone where that cannot be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.disk_cache.location import CACHE_VARIABLE
from lowering.native.compilation import compiler, tiers
from lowering.native.compilation.code_files import keep, kept, key_of, why_not_kept
from lowering.native.compilation.compiler import Level
from lowering.native.library import load
from lowering.native.library.load import ModuleText
from tests.helpers.processes import end_of
from tests.plan.native.running_natively import compiled, native_plan

X = np.linspace(-1, 1, 501)


def function(x: Any) -> Any:
    return np.exp(x) * 2 + x.sum()


def entries(folder: Path) -> list[Path]:
    return [path for path in (folder / "entries").rglob("*") if path.is_file()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[Level]:
    """The levels of what is compiled."""
    made: list[Level] = []

    def compile(text: str, level: Level, phase: Any) -> bytes:
        made.append(level)
        return compiler.compile(text, level, phase)

    monkeypatch.setattr(tiers, "compile", compile)
    return made


def test_full_code_on_disk_is_taken_at_once(folder: Path, levels: list[Level]) -> None:
    plan = native_plan(function, X)
    first = compiled(plan, level="quick")
    first.upload()
    assert (levels, len(entries(folder))) == (["quick", "full"], 2)
    second = compiled(native_plan(function, X), level="quick")
    np.testing.assert_array_equal(second([X])[0], first([X])[0])
    second([X]), second.upload()
    assert (levels, len(entries(folder))) == (["quick", "full"], 2)


def test_quick_code_on_disk_serves_until_there_is_full_code(
    folder: Path, levels: list[Level]
) -> None:
    compiled(native_plan(function, X), level="quick")
    compiled(native_plan(function, X), level="quick").upload()
    assert levels == ["quick", "full"]


def test_damaged_files_are_made_anew(folder: Path, levels: list[Level]) -> None:
    plan = native_plan(function, X)
    wanted = compiled(plan)([X])[0]
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    np.testing.assert_array_equal(compiled(plan)([X])[0], wanted)
    assert levels == ["full", "full"]
    assert len(entries(folder)) == 1
    compiled(plan)
    assert levels == ["full", "full"]


def test_a_key_is_of_all_that_the_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text = ModuleText("text", frozenset())
    others = ModuleText("other", frozenset()), ModuleText("text", frozenset({"tgo_exp_f64__f64"}))
    keys = {key_of(text, "quick"), *(key_of(each, "full") for each in (text, *others))}
    monkeypatch.setattr(compiler, "processor", lambda: ("x86-64-v3", "+avx2"))
    keys.add(key_of(text, "full"))
    monkeypatch.setattr(compiler, "processor", lambda: ("x86-64-v3", "+avx2,+fma"))
    keys.add(key_of(text, "full"))
    monkeypatch.setattr("llvmlite.__version__", "0.1")
    keys.add(key_of(text, "full"))
    monkeypatch.setattr(compiler, "FULL_OPTIONS", {"speed_level": 1})
    keys.add(key_of(text, "full"))
    monkeypatch.setattr(load, "_digest", lambda: "of another library")
    keys.add(key_of(text, "full"))
    assert len(keys) == 9


def unwritable(folder: Path) -> None:
    (folder / "entries").write_text("a file where a folder would be")


def missing(folder: Path) -> None:
    folder.rmdir()


@pytest.mark.parametrize("spoil", [unwritable, missing])
def test_where_nothing_can_be_kept_code_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spoil: Any
) -> None:
    spoil(folder)
    np.testing.assert_allclose(compiled(native_plan(function, X))([X])[0], function(X), rtol=1e-14)


def test_folders_that_cannot_be_made_or_trusted_are_said_by_explain(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_HOST", "native")
    lowered = tracegraph.jit(function, device="host").lower(X)
    assert why_not_kept() == ""
    assert "on disk" not in lowered.explain()
    (folder / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(folder / "file" / "below"))
    assert "not kept on disk: " in lowered.explain()
    keep("text", "full", b"code")
    assert kept("text", "full") is None
    if sys.platform != "win32":
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        monkeypatch.setenv(CACHE_VARIABLE, str(shared))
        assert "all users may write to" in lowered.explain()
        compiled(lowered.plan)
        assert [*shared.iterdir()] == []


PROCESS = """
import numpy as np
import tracegraph
from lowering.native.compilation import tiers
compiled = []
def counted(*given, own=tiers.compile):
    compiled.append(given[1])
    return own(*given)
tiers.compile = counted
f = tracegraph.jit(lambda x: np.exp(x).sum(0) + np.sort(x, 1)[:, :4], device="host")
f.warm(np.ones((6, 4)))
print(compiled, np.asarray(f(np.ones((6, 4)))).tobytes().hex())
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    variables = {"TRACEGRAPH_HOST": "native", CACHE_VARIABLE: str(tmp_path)}
    ends = [end_of(PROCESS, PYTHONHASHSEED=seed, **variables) for seed in ("1", "2")]
    (_, first, errors), (_, second, _) = ends
    assert errors == ""
    assert first.startswith("['quick', 'full']")
    assert second == first.replace("['quick', 'full']", "[]")
