"""Quick code, then full code: when each is made, and that a call runs one of them."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from lowering.host.executable import HostExecutable
from lowering.native.compilation import background, compiler, tiers
from lowering.native.compilation.compiler import Level
from lowering.native.compilation.first_level import first_level, rule_text
from tests.corpus import CASES
from tests.helpers.processes import end_of
from tests.plan.native.running_natively import assert_same_bits, compiled, native_plan
from tracegraph import fori_loop, tree, while_loop


def function(x: Any) -> Any:
    return np.exp(x) * 2 + x.sum()


X = np.linspace(-1, 1, 501)


class Compilations:
    """The levels that were compiled; `hold` makes those in the background wait."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.go = threading.Event()
        self.go.set()
        self.done = threading.Event()

    def compile(self, text: str, level: Level, phase: Any) -> bytes:
        self.levels.append(level)
        self.go.wait()
        return compiler.compile(text, level, phase)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Compilations:
    """Counts compilations. No code is read from the disk."""
    made = Compilations()
    monkeypatch.setattr(tiers, "compile", made.compile)
    monkeypatch.setattr(tiers, "kept", lambda text, level: None)
    monkeypatch.setattr(tiers, "keep", lambda text, level, code: None)
    return made


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[], object]]]:
    """The jobs that the thread in the background would have; none runs by itself."""
    waiting: list[Callable[[], object]] = []
    monkeypatch.setattr(tiers, "in_background", waiting.append)
    return iter([waiting]).__next__()


def quick_executable() -> HostExecutable:
    return compiled(native_plan(function, X), level="quick")


def test_the_second_call_asks_for_full_code_and_the_next_runs_it(
    compilations: Compilations, jobs: list[Callable[[], object]]
) -> None:
    executable = quick_executable()
    assert (compilations.levels, len(jobs)) == (["quick"], 0)
    first = executable([X])[0].copy()
    assert len(jobs) == 0
    second = executable([X])[0].copy()
    assert (compilations.levels, len(jobs)) == (["quick"], 1)
    third = executable([X])[0].copy()
    assert len(jobs) == 1
    jobs[0]()
    assert compilations.levels == ["quick", "full"]
    fourth = executable([X])[0].copy()
    for other in (second, third, fourth):
        assert_same_bits(first, other)
    np.testing.assert_allclose(first, function(X), rtol=1e-14)


def test_an_upload_makes_full_code_once(
    compilations: Compilations, jobs: list[Callable[[], object]]
) -> None:
    executable = quick_executable()
    executable.upload()
    executable.upload()
    for _ in range(3):
        executable([X])
    assert (compilations.levels, jobs) == (["quick", "full"], [])


def test_full_code_made_meanwhile_is_not_made_again(
    compilations: Compilations, jobs: list[Callable[[], object]]
) -> None:
    executable = quick_executable()
    executable([X])
    executable([X])
    executable.upload()
    jobs[0]()
    assert compilations.levels == ["quick", "full"]


def test_code_for_a_closed_executable_is_not_made(
    compilations: Compilations, jobs: list[Callable[[], object]]
) -> None:
    executable = quick_executable()
    executable([X])
    executable([X])
    executable.close()
    del executable
    jobs[0]()
    assert compilations.levels == ["quick"]


def test_callers_in_two_threads_see_one_code_or_the_other(compilations: Compilations) -> None:
    executable = quick_executable()
    compilations.go.clear()
    wanted = function(X)
    ended = threading.Event()
    wrong: list[Any] = []

    def calls() -> None:
        while not ended.is_set():
            (found,) = executable([X])
            if not np.allclose(found, wanted, rtol=1e-14):
                wrong.append(found)

    threads = [threading.Thread(target=calls) for _ in range(2)]
    for thread in threads:
        thread.start()
    compilations.go.set()
    executable.upload()
    ended.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert "full" in compilations.levels


def test_quick_code_stays_where_full_code_fails(
    compilations: Compilations,
    jobs: list[Callable[[], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executable = quick_executable()
    executable([X])
    executable([X])

    def fail(*given: Any) -> bytes:
        raise RuntimeError("LLVM is out of order")

    monkeypatch.setattr(tiers, "compile", fail)
    with pytest.raises(RuntimeError, match="out of order"):
        jobs[0]()
    np.testing.assert_allclose(executable([X])[0], function(X), rtol=1e-14)


def test_a_job_that_fails_is_reported_and_others_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda given: reported.append(given.exc_value))
    thread = background.Background()
    failed, ran = ValueError("a job"), threading.Event()

    def fail() -> None:
        raise failed

    thread.add(fail)
    while thread._thread is not None and thread._thread.is_alive():
        thread._thread.join()
    thread.add(ran.set)
    assert ran.wait(60)
    assert reported == [failed]


@pytest.mark.parametrize("name", sorted(CASES)[::5])
def test_both_levels_have_the_same_bits(name: str) -> None:
    case = CASES[name]
    plan = native_plan(case.function, *case.arguments)
    executable = compiled(plan, level="quick")
    leaves = tree.leaves(case.arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick = [np.array(each) for each in executable([np.array(leaf) for leaf in leaves])]
        executable.upload()
        full = executable([np.array(leaf) for leaf in leaves])
    for one, other in zip(quick, full, strict=True):
        assert_same_bits(one, other)


def test_long_runs_wait_for_full_code() -> None:
    def until(x: Any) -> Any:
        return while_loop(lambda s: s[1] < s[0][0], lambda s: (np.sin(s[0]), s[1] + 1), (x, 0))

    def counted(x: Any) -> Any:
        return fori_loop(0, 7, lambda i, y: np.sin(y), x)

    assert first_level(native_plan(function, X)) == "quick"
    assert first_level(native_plan(until, np.ones(10))) == "quick"
    assert first_level(native_plan(until, np.ones(10**6))) == "full"
    assert first_level(native_plan(counted, np.ones(1000))) == "quick"
    assert first_level(native_plan(counted, np.ones(10**7))) == "full"


def test_the_rule_is_said() -> None:
    text = rule_text(native_plan(function, X))
    assert text.startswith("quick in the first call, for less than 0.01 ms")
    text = rule_text(native_plan(np.sin, np.ones(10**8)))
    assert text.startswith("full from the first call on, as quick code would run for about ")


ENDS = """
import os
import numpy as np
import tracegraph
def steps(x):
    for i in range(12):
        x = np.cumsum(np.exp(np.sin(x) * (1 + i)))
    return x
f = tracegraph.jit(steps, device="host")
x = np.linspace(0, 1, 64)
f(x), f(x)
"""


@pytest.mark.parametrize("wait", [0, 0.02, 0.1])
def test_a_process_ends_while_code_is_compiled(tmp_path: Any, wait: float) -> None:
    script = f"{ENDS}\nimport time\ntime.sleep({wait})"
    variables = {"TRACEGRAPH_HOST": "native", "TRACEGRAPH_CACHE_DIR": str(tmp_path)}
    assert end_of(script, **variables) == (0, "", "")


LATE = """
import atexit
def compiles():
    from lowering.native.compilation.compiler import compile
    from lowering.native.compilation.llvm_turns import first_in_llvm
    with first_in_llvm():
        print(len(compile("define void @f() { ret void }")) > 100)
atexit.register(compiles)
"""


def test_code_is_compiled_while_a_process_ends(tmp_path: Any) -> None:
    variables = {"TRACEGRAPH_HOST": "native", "TRACEGRAPH_CACHE_DIR": str(tmp_path)}
    assert end_of(LATE + ENDS, **variables) == (0, "True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_compiles_for_itself(tmp_path: Any) -> None:
    child = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "child = os.fork()\n"
        "g = tracegraph.jit(lambda x: x + 1, device='host')\n"
        "for _ in range(4): found = g(x)\n"
        "g.warm(x)\n"
        "os._exit(int(found[0] != 1)) if child == 0 else None\n"
        "print(os.waitpid(child, 0)[1])"
    )
    variables = {"TRACEGRAPH_HOST": "native", "TRACEGRAPH_CACHE_DIR": str(tmp_path)}
    assert end_of(f"{ENDS}\n{child}", **variables) == (0, "0\n", "")
