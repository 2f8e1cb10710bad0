"""The limit of threads: by calls, by the environment, by affinity and by quotas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tracegraph
from tracegraph.concurrency import threads


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without a limit before and after."""
    for variable in threads.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    threads._default.cache_clear()
    tracegraph.set_threads(None)
    yield
    tracegraph.set_threads(None)
    threads._default.cache_clear()


def test_a_call_sets_the_limit_and_none_takes_it_back() -> None:
    default = tracegraph.get_threads()
    tracegraph.set_threads(default + 3)
    assert tracegraph.get_threads() == default + 3
    tracegraph.set_threads(None)
    assert tracegraph.get_threads() == default


@pytest.mark.parametrize("number", [1.0, "2", True])
def test_what_is_no_integer_is_refused(number: Any) -> None:
    with pytest.raises(TypeError, match="set_threads takes a number of threads, or None, got"):
        tracegraph.set_threads(number)


@pytest.mark.parametrize("number", [0, -1])
def test_less_than_one_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, got {number}"):
        tracegraph.set_threads(number)


@pytest.mark.parametrize(
    ("own", "of_openmp", "wanted"), [("3", "", 3), ("", "5", 5), ("3", "5", 3), ("", "4,2", 4)]
)
def test_the_environment_sets_the_default(
    own: str, of_openmp: str, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_THREADS", own)
    monkeypatch.setenv("OMP_NUM_THREADS", of_openmp)
    assert tracegraph.get_threads() == wanted


@pytest.mark.parametrize("text", ["many", "0", "-2", "1.5"])
def test_what_is_no_number_in_the_environment_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_THREADS", text)
    with pytest.raises(ValueError, match=f"TRACEGRAPH_THREADS is '{text}'; set it to a number"):
        tracegraph.get_threads()


def test_affinity_limits_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {1, 5, 9}, raising=False)
    monkeypatch.setattr(threads, "_quotas", lambda: iter(()))
    assert tracegraph.get_threads() == 3


@pytest.mark.parametrize(
    ("text", "wanted"), [("150000 100000", 2), ("max 100000", None), ("", None), ("5 100000", 1)]
)
def test_the_quota_of_a_group_is_rounded_up(text: str, wanted: int | None, tmp_path: Path) -> None:
    if text:
        (tmp_path / "cpu.max").write_text(text)
    assert threads._unified_quota(tmp_path) == wanted


@pytest.mark.parametrize(("quota", "wanted"), [("250000", 3), ("-1", None)])
def test_the_quota_of_a_group_of_version_1(quota: str, wanted: int | None, tmp_path: Path) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text(quota)
    (tmp_path / "cpu.cfs_period_us").write_text("100000")
    assert threads._separate_quota(tmp_path) == wanted


def test_a_quota_limits_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(64)), raising=False)
    monkeypatch.setattr(threads, "_quotas", lambda: iter((7, 4)))
    assert tracegraph.get_threads() == 4
