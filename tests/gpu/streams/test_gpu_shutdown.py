"""A process ends, whatever runs on the GPU, and shows what was printed until then."""

from __future__ import annotations

import pytest

from tests.helpers.processes import end_of

PRELUDE = """
import numpy as np
import tracegraph
from lowering.cuda.streams import shutdown
from tracegraph import debug, fori_loop, while_loop

shutdown.EXIT_SECONDS = 1.0

def rise(x, **options):
    return while_loop(lambda x: (x > -1).all(), lambda x: x + 1, x, **options)

@tracegraph.jit(device="cuda")
def prints(x):
    def step(x):
        debug.print("x is {}", x[0])
        return x + 1
    return while_loop(lambda x: (x > -1).all(), step, x)

@tracegraph.jit(device="cuda")
def shows(x):
    return rise(x, progress="rising")

@tracegraph.jit(device="cuda")
def silent(x):
    return rise(x)

@tracegraph.jit(device="cuda")
def counts(x, n):
    def step(i, x):
        debug.print("i is {}", i)
        return x + 1
    return fori_loop(0, n, step, x)

x = np.zeros(1000)
"""


def end_after(script: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of a process."""
    return end_of(PRELUDE + script)


def test_an_endless_loop_that_prints() -> None:
    code, out, err = end_after("prints(x)")
    assert code == 0
    assert out.startswith("x is 0.0\nx is 1.0\nx is 2.0\n")
    lines = [line for line in err.splitlines() if line.startswith("tracegraph: ")]
    assert len(lines) == 1
    assert lines[0].startswith("tracegraph: prints still ran 1 s after the end of the script")


def test_an_endless_loop_with_a_bar() -> None:
    code, out, err = end_after("shows(x)")
    assert (code, out) == (0, "")
    assert "rising" in err
    assert "tracegraph: shows still ran 1 s" in err


def test_an_endless_loop_on_another_stream() -> None:
    code, out, err = end_after(
        """
with tracegraph.stream(tracegraph.Stream()):
    shows(x)
"""
    )
    assert (code, out) == (0, "")
    assert "tracegraph: shows still ran 1 s" in err


def test_an_endless_loop_behind_an_exception() -> None:
    code, _, err = end_after("prints(x)\nraise ValueError('of the script')")
    assert code == 1
    assert "ValueError: of the script" in err
    assert "tracegraph: prints still ran" in err


@pytest.mark.parametrize("before", ["", "raise SystemExit(3)"])
def test_a_loop_that_ends_in_time_prints_all(before: str) -> None:
    code, out, err = end_after("counts(x, 2000)\n" + before)
    assert (code, err) == (3 if before else 0, "")
    assert out.splitlines() == [f"i is {i}" for i in range(2000)]


def test_loops_that_report_nothing_end_without_a_word() -> None:
    assert end_after("silent(x)") == (0, "", "")
