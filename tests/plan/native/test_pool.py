"""The pool of threads: several callers, fork, exits, and changes of the limit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.executable import HostExecutable
from lowering.native.pool import ready
from tests.plan.native.chunked import chunked_nests, small_chunks, threads
from tests.plan.native.running_natively import compiled, native_plan
from tracegraph.errors import TimeLimitError

ROOT = Path(__file__).parents[3]

can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def work(x: Any) -> Any:
    y = np.exp(-x * x)
    return y / y.sum() + np.roll(y, 1)


def chunked(function: Callable[..., Any], *arguments: Any) -> HostExecutable:
    with small_chunks():
        plan = native_plan(function, *arguments)
        assert chunked_nests(plan)
        return compiled(plan, poison=False)


def workers() -> list[str]:
    return [t.name for t in threading.enumerate() if re.fullmatch(r"tracegraph-\d+", t.name)]


def test_there_are_as_many_workers_as_the_limit_allows() -> None:
    x = np.linspace(-3, 3, 5000)
    executable = chunked(work, x)
    for number in (3, 1, 2):
        with threads(number):
            executable([x])
            assert len(workers()) == number - 1


def test_several_callers_at_once_get_their_own_results() -> None:
    x = np.linspace(-3, 3, 5000)
    executables = [chunked(work, x) for _ in range(3)]
    inputs = [x * factor for factor in (1, 2, 3)]
    wanted = [np.array(run([x])[0]) for run, x in zip(executables, inputs, strict=True)]
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(300):
            (found,) = executables[number]([inputs[number]])
            if np.asarray(found).tobytes() != wanted[number].tobytes():
                wrong.append(number)

    with threads(3):
        callers = [threading.Thread(target=call, args=(number,)) for number in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert wrong == []


def test_the_limit_may_change_while_others_call() -> None:
    x = np.linspace(-3, 3, 5000)
    executable = chunked(work, x)
    wanted = np.array(executable([x])[0]).tobytes()
    stop, wrong = threading.Event(), []

    def call() -> None:
        while not stop.is_set():
            if np.asarray(executable([x])[0]).tobytes() != wanted:
                wrong.append(1)

    caller = threading.Thread(target=call)
    caller.start()
    try:
        for number in (1, 2, 3, 1, 3, 2) * 10:
            with threads(number):
                ready()
    finally:
        stop.set()
        caller.join()
    assert wrong == []


def test_the_host_is_called_between_nests_of_chunks() -> None:
    seen = []

    def note(total: Any) -> Any:
        seen.append(float(total))
        return total * 2

    def function(x: Any) -> Any:
        total = np.exp(x).sum()
        twice = tracegraph.pure_callback(note, total, total)
        return np.sin(x) * twice

    x = np.linspace(0, 1, 5000)
    executable = chunked(function, x)
    with threads(3):
        (found,) = executable([x])
    np.testing.assert_allclose(found, np.sin(x) * 2 * np.exp(x).sum(), rtol=1e-14)
    assert len(seen) == 1


def test_an_exception_of_the_host_leaves_the_pool_usable() -> None:
    fails = [True]

    def fail(total: Any) -> Any:
        if fails.pop():
            raise LookupError("not there")
        return total

    def function(x: Any) -> Any:
        total = np.exp(x).sum()
        return np.sin(x) * tracegraph.pure_callback(fail, total, total)

    x = np.linspace(0, 1, 5000)
    executable = chunked(function, x)
    with threads(2):
        with pytest.raises(LookupError, match="not there"):
            executable([x])
        fails.append(False)
        (found,) = executable([x])
    np.testing.assert_allclose(found, np.sin(x) * np.exp(x).sum(), rtol=1e-14)


def test_a_callback_may_call_other_code_with_chunks() -> None:
    x = np.linspace(-3, 3, 5000)
    inner = chunked(work, x)

    def nested(total: Any) -> Any:
        return np.asarray(inner([x])[0]).sum() + total

    def function(x: Any) -> Any:
        total = np.exp(x).sum()
        return np.sin(x) * tracegraph.pure_callback(nested, total, total)

    executable = chunked(function, x)
    with threads(3):
        (found,) = executable([x])
        total = np.asarray(inner([x])[0]).sum() + np.exp(x).sum()
    np.testing.assert_allclose(found, np.sin(x) * total, rtol=1e-13)


def test_a_time_limit_ends_a_loop_of_nests_with_chunks() -> None:
    def endless(x: Any) -> Any:
        return tracegraph.while_loop(lambda x: x[0] < 2, np.sin, x)

    x = np.linspace(-3, 3, 5000)
    with small_chunks(), threads(3):
        function = tracegraph.jit(endless, device="host")
        for _ in range(2):
            with pytest.raises(TimeLimitError), tracegraph.time_limit(0.2):
                function(x)


@can_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_computes_with_workers_of_its_own() -> None:
    x = np.linspace(-3, 3, 5000)
    executable = chunked(work, x)
    with threads(3):
        wanted = np.array(executable([x])[0]).tobytes()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            before = len(workers())
            same = np.asarray(executable([x])[0]).tobytes() == wanted
            os.write(writing, f"{before} {len(workers())} {same}".encode())
            os._exit(0)
        os.close(writing)
        _, status = os.waitpid(child, 0)
        with os.fdopen(reading) as pipe:
            assert (pipe.read(), status) == ("0 2 True", 0)
        assert np.asarray(executable([x])[0]).tobytes() == wanted


SCRIPT = """
import numpy as np, tracegraph
tracegraph.set_threads(3)
f = tracegraph.jit(lambda x: np.exp(x).sum(), device="host")
x = np.linspace(0, 1, 1_000_000)
print(np.allclose(f(x), np.exp(x).sum()))
"""


def run(script: str, **environment: str) -> tuple[int, str, str]:
    environment = {**os.environ, "TRACEGRAPH_HOST": "native", **environment}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_process_with_workers_ends() -> None:
    assert run(SCRIPT) == (0, "True\n", "")


def test_a_process_whose_other_thread_computes_ends() -> None:
    script = f"""{SCRIPT}
import threading
def forever():
    while True:
        f(x)
threading.Thread(target=forever, daemon=True).start()
"""
    assert run(script) == (0, "True\n", "")


def test_code_that_runs_at_exit_still_computes() -> None:
    script = f"import atexit\natexit.register(lambda: print(float(f(x)) > 0))\n{SCRIPT}"
    assert run(script) == (0, "True\nTrue\n", "")
