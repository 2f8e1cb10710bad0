"""Calls of the host from native code: errors, signals, and what they read and write."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.native.nests.supported import missing
from lowering.plan.nodes import KernelNode, walk
from tests.helpers.processes import end_of
from tests.plan.native.running_natively import compiled, native, native_plan
from tracegraph import debug


def test_conditions_of_users_ops_are_set_by_the_host() -> None:
    tripled = tracegraph.elementwise(lambda x: x * 3, cuda="3 * {0}")

    def function(x: Any) -> Any:
        return tracegraph.while_loop(lambda s: tripled(s) < 100, lambda s: s + 1, x)

    plan = native_plan(function, 0.0)
    nests = [
        n for node in walk(plan.graph) if isinstance(node, KernelNode) for n in node.kernel.nests
    ]
    assert any(missing(nest) for nest in nests)
    assert native(function, 0.0) == 34.0


def test_an_error_in_a_callback_ends_the_run_and_leaves_the_code_usable() -> None:
    seen: list[int] = []

    def note(x: Any) -> None:
        seen.append(int(x))
        if x == 3:
            raise ZeroDivisionError("three")

    def function(n: Any) -> Any:
        def step(i: Any) -> Any:
            debug.callback(note, i)
            return i + 1

        return tracegraph.while_loop(lambda i: i < n, step, np.int64(0))

    executable = compiled(native_plan(function, np.int64(10)))
    with pytest.raises(ZeroDivisionError, match="three"):
        executable([np.int64(10)])
    assert seen == [0, 1, 2, 3]
    seen.clear()
    assert executable([np.int64(2)])[0] == 2
    assert seen == [0, 1]


@pytest.mark.parametrize("error", [GeneratorExit, StopIteration, KeyboardInterrupt])
def test_whatever_a_callback_raises_ends_the_run_and_leaves_the_code_usable(
    error: type[BaseException],
) -> None:
    raises = [False]

    def doubled(x: Any) -> Any:
        if raises[0]:
            raise error
        return np.asarray(x) * 2

    def function(x: Any) -> Any:
        return tracegraph.pure_callback(doubled, x, x) + 1

    executable = compiled(native_plan(function, 0.0))
    for times in range(4):
        raises[0] = times % 2 == 1
        if raises[0]:
            with pytest.raises(error):
                executable([np.float64(times)])
        else:
            assert executable([np.float64(times)])[0] == 2 * times + 1


def test_a_call_just_below_the_recursion_limit_fails_or_is_right() -> None:
    def function(x: Any) -> Any:
        return tracegraph.pure_callback(lambda x: np.asarray(x) * 2, x, x) + 1

    executable = compiled(native_plan(function, 0.0), poison=False)
    argument = [np.array(3.0)]

    def below(frames: int) -> Any:
        return below(frames - 1) if frames else executable.launch(argument, None)[0]

    def ends(frames: int) -> str:
        try:
            return str(below(frames))
        except RecursionError:
            return "too deep"

    limit = sys.getrecursionlimit()
    found = {ends(frames) for frames in range(limit - 300, limit)}
    assert found == {"7.0", "too deep"}
    assert executable(argument)[0] == 7


def test_a_function_that_is_dropped_frees_its_code_at_once() -> None:
    executable = compiled(native_plan(lambda x: np.sort(x) + 1, np.ones(8)))
    executable([np.ones(8)])
    dropped = weakref.ref(executable)
    gc.disable()
    try:
        executable.close()
        del executable
        assert dropped() is None
    finally:
        gc.enable()


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import tracegraph

count = tracegraph.jit(
    lambda n: tracegraph.while_loop(lambda s: s < n, lambda s: s + 1, np.int64(0)), device="host"
)
assert count(np.int64(10)) == 10
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    count(np.int64(2) ** 62)
except KeyboardInterrupt:
    print("interrupted", count(np.int64(10)))
"""


def test_a_signal_ends_a_long_loop() -> None:
    code, output, errors = end_of(INTERRUPTED, TRACEGRAPH_HOST="native")
    assert (code, output.strip(), errors) == (0, "interrupted 10", "")


LIMITED = """
import numpy as np
import tracegraph

count = tracegraph.jit(
    lambda n: tracegraph.while_loop(lambda s: s < n, lambda s: s + 1, np.int64(0)), device="host"
)
try:
    with tracegraph.time_limit(0.2):
        count(np.int64(2) ** 62)
except tracegraph.errors.TimeLimitError:
    print("limited", count(np.int64(10)))
"""


def test_a_time_limit_ends_a_long_loop() -> None:
    code, output, errors = end_of(LIMITED, TRACEGRAPH_HOST="native")
    assert (code, output.strip(), errors) == (0, "limited 10", "")
