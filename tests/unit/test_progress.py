"""Progress of loops: callbacks, bars and lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.helpers.traced import trace
from tests.programs.by_hand import apply, literal, out, program, value
from tracegraph import control, progress, tree
from tracegraph.ir import interpret
from tracegraph.ir.verify import verify
from tracegraph.passes import optimize
from tracegraph.progress import Monitor

X = np.array([1.0, 2.0, 3.0])


LOOPS: dict[str, tuple[Callable[[Any, Any], Any], list[tuple[int, int | None]]]] = {
    "while_loop": (
        lambda x, p: control.while_loop(lambda c: c[0] < 4, lambda c: c + 1, x, progress=p),
        [(1, None), (2, None), (3, None)],
    ),
    "bounded while_loop": (
        lambda x, p: control.while_loop(
            lambda c: c[0] < 9, lambda c: c + 1, x, max_steps=2, on_max_steps="stop", progress=p
        ),
        [(1, None), (2, None)],
    ),
    "fori_loop": (
        lambda x, p: control.fori_loop(2, 5, lambda i, c: c + i, x, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "scan": (
        lambda x, p: control.scan(lambda c, v: (c + v, c), 0.0, x, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "reverse scan": (
        lambda x, p: control.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "map": (
        lambda x, p: control.map(lambda v: v + 1, x, progress=p),
        [(1, 3), (2, 3), (3, 3)],
    ),
    "nothing": (lambda x, p: control.fori_loop(0, 0, lambda i, c: c, x, progress=p), []),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_callback_is_told_each_step(name: str) -> None:
    loop, wanted = LOOPS[name]
    told: list[tuple[int, int | None]] = []

    def callback(step: int, total: int | None) -> None:
        told.append((step, total))

    plain = loop(X, False)
    results = [loop(X, callback)]
    assert told == wanted
    traced = trace(lambda x: loop(x, callback), X)
    for variant in (traced, verify(optimize(traced))):
        told.clear()
        results.append(interpret.run(variant, X))
        assert told == wanted
    for result in results:
        for got, expected in zip(tree.leaves(result), tree.leaves(plain), strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_callback_need_not_be_hashable() -> None:
    class Log(list[int]):
        def __call__(self, step: int, total: int | None) -> None:
            self.append(step)

    log = Log()

    def f(x: Any) -> Any:
        return control.map(lambda v: v, x, progress=log), control.map(lambda v: v, x, progress=log)

    interpret.run(verify(optimize(trace(f, X))), X)
    assert log == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("reverse", "unroll", "wanted"), [(False, 2, [2, 4, 5]), (True, 2, [1, 3, 5]), (False, 9, [5])]
)
def test_an_unrolled_scan_reports_once_an_iteration(
    reverse: bool, unroll: int, wanted: list[int]
) -> None:
    told: list[int] = []

    def f(x: Any) -> Any:
        return control.scan(
            lambda c, v: (c + v, v),
            0.0,
            x,
            reverse=reverse,
            unroll=unroll,
            progress=lambda step, total: told.append(step),
        )

    interpret.run(trace(f, np.arange(5.0)), np.arange(5.0))
    assert told == wanted


def test_the_total_of_a_traced_bound_is_not_known() -> None:
    told: list[tuple[int, int | None]] = []

    def f(n: Any) -> Any:
        return control.fori_loop(0, n, lambda i, c: c, 0.0, progress=lambda *a: told.append(a))

    interpret.run(trace(f, 2), np.int64(2))
    assert told == [(1, None), (2, None)]


class FakeTqdm:
    """Keeps what the real one would draw."""

    made: list[FakeTqdm]

    def __init__(self, desc: str, total: int | None) -> None:
        self.desc, self.total, self.n = desc, total, 0
        self.log: list[Any] = []
        self.made.append(self)

    def update(self, n: int) -> None:
        self.n += n
        self.log.append(self.n)

    def reset(self, total: int | None) -> None:
        self.n = 0
        self.log.append("reset")

    def close(self) -> None:
        self.log.append("close")


@pytest.fixture
def tqdm(monkeypatch: pytest.MonkeyPatch) -> type[FakeTqdm]:
    parent, module = ModuleType("tqdm"), ModuleType("tqdm.auto")
    module.tqdm = FakeTqdm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", parent)
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    FakeTqdm.made = []
    return FakeTqdm


def nested(x: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        return control.fori_loop(0, 2, lambda j, c: c + j, c, progress="inner")

    return control.fori_loop(0, 2, outer, x, progress=True)


def test_bars_of_tqdm_are_drawn_and_closed(tqdm: type[FakeTqdm]) -> None:
    nested(X)
    assert [(bar.desc, bar.total, bar.log) for bar in tqdm.made] == [
        (tqdm.made[0].desc, 2, [1, 2, "close"]),
        ("inner", 2, [1, 2, "close"]),
        ("inner", 2, [1, 2, "close"]),
    ]
    assert tqdm.made[0].desc.startswith("outer (test_progress.py:")


def test_a_loop_that_is_entered_again_in_a_program_keeps_its_bar(tqdm: type[FakeTqdm]) -> None:
    interpret.run(trace(nested, X), X)
    inner, outer = tqdm.made
    assert inner.log == [1, 2, "reset", 1, 2, "close"]
    assert outer.log == [1, 2, "close"]


def test_a_bar_is_closed_when_the_loop_fails(tqdm: type[FakeTqdm]) -> None:
    def broken(i: Any, c: Any) -> Any:
        raise KeyError("broken")

    with pytest.raises(KeyError):
        control.fori_loop(0, 2, broken, X, progress=True)
    assert tqdm.made[0].log == ["close"]


@pytest.mark.parametrize(("interval", "lines"), [(0.0, ["1/3", "2/3", "3/3"]), (1e9, ["3/3"])])
def test_without_tqdm_lines_are_written_now_and_then_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    interval: float,
    lines: list[str],
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(progress, "INTERVAL", interval)
    control.fori_loop(0, 3, lambda i, c: c, X, progress="fit")
    assert capsys.readouterr().err.splitlines() == [f"fit: {line} steps" for line in lines]


def test_a_report_outside_of_a_run_is_shown_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[int] = []
    progress.report(Monitor("loop", None, lambda step, total: told.append(step), None), 3)
    assert told == [3]


def test_effects_in_hand_made_programs_keep_their_order() -> None:
    told: list[int] = []
    monitor = Monitor("loop", None, lambda step, total: told.append(step), None)
    token = value("bool[0]")
    first = apply("report_step", token, literal(np.int64(2)), monitor=monitor)
    second = apply("report_step", out(first), literal(np.int64(1)), monitor=monitor)
    made = program([token], [first, second], out(second))
    assert "report_step[monitor='loop'] a 2" in str(made)
    interpret.run(optimize(made), np.zeros(0, bool))
    assert told == [2, 1]
