"""Programs that another process has planned: found by what they compute, and as they were made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering import plan_of
from lowering.codegen import unit_source
from lowering.disk_cache import keys
from lowering.disk_cache.location import code_store
from lowering.disk_cache.pickles import dumped, loaded
from lowering.host.choice import why_not_native
from lowering.native.compilation import kept_modules
from lowering.plan.plan import Origin
from lowering.plan.target import overrides
from tests.corpus import CASES
from tests.helpers.processes import environment
from tracegraph.cache import settings
from tracegraph.dtypes import bfloat16
from tracegraph.ir.program import walk
from tracegraph.ir.stored.writing import program_key

F32 = tracegraph.ArrayType("float32", (100,))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, str(tmp_path))
    monkeypatch.setenv(settings.PROGRAMS_VARIABLE, "1")
    monkeypatch.setattr(settings, "chosen", settings.CacheSettings())
    monkeypatch.setattr(settings, "counts", settings.CacheUses())
    return tmp_path


def named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = name
    return function


def plan(function: Callable[..., Any], *types: Any, device: str = "cuda") -> Any:
    return tracegraph.jit(function, device=device).lower(*(types or (F32,))).plan


def counts() -> tuple[int, int]:
    return settings.counts.hits, settings.counts.misses


def test_plans_of_the_corpus_are_found_as_they_were_made() -> None:
    """Names and lines are those of the program in hand."""
    cases = list(CASES.values())[::2]
    for case in cases:
        program = tracegraph.jit(case.function).trace(*case.arguments).optimized
        made, again = plan_of(program, "cuda"), plan_of(program, "cuda")
        assert made is not again
        assert str(made) == str(again)
        assert unit_source(made).functions == unit_source(again).functions
    hits, misses = counts()
    assert hits >= len(cases)
    assert hits + misses == 2 * len(cases)  # some are the same


def test_names_and_lines_are_those_of_the_program_in_hand() -> None:
    one = lambda x: np.sin(x).sum() + 1  # noqa: E731
    two = lambda x: np.sin(x).sum() + 1  # noqa: E731
    first, second = plan(named("first", one)), plan(named("second", two))
    assert counts() == (1, 1)
    text = str(first).replace("first", "second")
    line = one.__code__.co_firstlineno
    assert str(second) != text
    assert str(second) == text.replace(f".py:{line}", f".py:{two.__code__.co_firstlineno}")


def test_what_planning_reads_is_part_of_the_key() -> None:
    function = named("f", lambda x: tracegraph.fori_loop(0, 3, lambda i, y: np.sin(y), x))
    plan(function)
    with overrides.override(loops="unrolled"):
        plan(function)
    plan(function, device="host")
    tracegraph.jit(function, device="cuda", donate_argnums=0).lower(F32)
    tracegraph.jit(function, device="cuda", scratch="per_launch").lower(F32)
    plan(function, tracegraph.ArrayType("float32", (101,)))
    assert counts() == (0, 6)
    reasons = [miss.reason for miss in tracegraph.cache.misses()]
    assert [re.sub(" differs? from before", "", reason) for reason in reasons] == [
        "there was no program of this function",
        "the schedules",
        "the device, the schedules",
        "the device, the donated arguments",
        "the donated arguments, scratch=",
        "the operations, types or constants, scratch=",
    ]


def test_another_installation_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    function = named("f", lambda x: x + 1)
    plan(function)
    monkeypatch.setattr(keys, "installation", lambda: "newer")
    plan(function)
    assert counts() == (0, 2)
    assert "installation" in tracegraph.cache.misses()[-1].reason


def test_constants_of_programs_are_not_stored() -> None:
    table = np.arange(100_000.0).astype(bfloat16)
    type_ = tracegraph.ArrayType(bfloat16, (100_000,))
    found = [plan(lambda x: x + table, type_) for _ in range(2)]
    assert sum(p.stat().st_size for p in Path(code_store()._entries).rglob("*")) < 50_000
    ((_, data),) = found[1].constants
    assert data.tobytes() == table.tobytes()
    assert counts() == (1, 1)


def test_plans_of_libraries_and_of_own_kernels_are_found() -> None:
    """Whose ops and kernels are no globals of the registry."""
    large, small = (tracegraph.ArrayType("float64", (n, n)) for n in (200, 20))
    for type_ in (large, small):
        found = [
            plan(lambda x: (np.linalg.qr(x), np.linalg.eigh(x), np.fft.fft2(x)), type_)
            for _ in range(2)
        ]
        assert str(found[0]) == str(found[1])
        assert unit_source(found[0]).source == unit_source(found[1]).source
    assert counts() == (2, 2)


def test_programs_with_functions_of_the_user_are_planned_each_time() -> None:
    plus = tracegraph.elementwise(lambda x: x + 1, cuda="{0} + 1")
    for _ in range(2):
        plan(lambda x: plus(x))
        plan(lambda x: tracegraph.pure_callback(lambda y: y, F32, x))
    assert counts() == (0, 0)


@pytest.mark.parametrize("damage", [b"", b"no pickle" * 9])
def test_what_cannot_be_read_is_made_again(damage: bytes) -> None:
    function = named("f", lambda x: x + 1)
    made = plan(function)
    code_store().put(made.origin.key, damage)
    assert str(plan(function)) == str(made)
    assert str(plan(function)) == str(made)
    assert counts() == (1, 2)


def test_a_pickle_of_other_classes_is_refused() -> None:
    origin = Origin(b"", "f", (), ())
    assert loaded(dumped((1, frozenset({2})), origin), origin) == (1, frozenset({2}))
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    with pytest.raises(pickle.UnpicklingError, match="is in no Plan"):
        loaded(pickle.dumps(Evil()), origin)


def test_nothing_is_kept_where_that_is_not_wanted(folder: Path) -> None:
    tracegraph.cache.set(max_bytes=0)
    plan(lambda x: x + 1)
    tracegraph.cache.set(max_bytes=1 << 20, enabled=False)
    plan(lambda x: x + 1)
    assert not list(folder.iterdir())
    assert "switched off" in tracegraph.cache.stats()["problem"]
    tracegraph.cache.set(enabled=True, programs=False)
    plan(lambda x: x + 1)
    assert not list(folder.iterdir())


def test_statistics_and_clearing(folder: Path) -> None:
    function = named("f", lambda x: x + 1)
    plan(function)
    plan(function)
    found = tracegraph.cache.stats()
    assert (found["hits"], found["misses"], found["entries"]) == (1, 1, 2)
    assert found["directory"] == str(folder)
    assert found["seconds_saved"] > 0
    tracegraph.cache.clear()
    assert tracegraph.cache.stats()["entries"] == 0
    plan(function)
    assert counts() == (1, 2)


def test_machine_code_is_found_without_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    if why_not_native():
        pytest.skip(why_not_native())
    monkeypatch.setenv("TRACEGRAPH_HOST", "native")
    tables = np.arange(5.0), np.ones(5)

    def program(x: Any) -> Any:
        y = np.sort(x + tables[0])[:, None] @ x[None]
        z = np.linalg.solve(y + 9 * np.eye(5), x)
        return tracegraph.fori_loop(0, 3, lambda i, z: z @ y + i, y), tables[1] * x.sum() + z

    first = tracegraph.jit(program, device="host").lower(tables[1])
    expected = first.compile()(tables[1])

    def forbidden(*args: Any) -> Any:
        raise AssertionError("written again")

    monkeypatch.setattr(kept_modules, "modules_of", forbidden)
    again = tracegraph.jit(named("renamed", program), device="host").lower(tables[1]).compile()
    for a, b in zip(expected, again(tables[1]), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    again.executable.upload()
    assert again(tables[1])[1].tolist() == expected[1].tolist()
    assert counts() == (2, 1)
    assert again.plan.name == "renamed"


def test_a_full_disk_and_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lowering.disk_cache.store.mkstemp", full)
    for _ in range(2):
        assert str(plan(named("f", lambda x: x + 1))).startswith("plan f")
    assert counts() == (0, 2)
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, "/proc/nowhere")
    assert str(plan(named("f", lambda x: x + 1))).startswith("plan f")
    assert tracegraph.cache.stats()["directory"] is None


SCRIPT = """
import json, sys
import numpy as np
import tracegraph
def {name}(x):
    y = np.sort(np.sin(x)) + x.sum()
    return tracegraph.while_loop(lambda y: y[0] < 3, lambda y: y * 2 + 1, y)
plan = tracegraph.jit({name}, device="cuda").lower(np.ones(1000)).plan
late = ("lowering.lower", "lowering.planning", "lowering.fusion", "lowering.scheduling", "llvmlite")
print(json.dumps([[name for name in late if name in sys.modules], len(str(plan).splitlines())]))
"""


def test_a_second_process_imports_no_planning() -> None:
    found = []
    for name in ("function", "renamed"):
        command = [sys.executable, "-c", SCRIPT.format(name=name)]
        done = subprocess.run(command, env=environment(), capture_output=True, check=True)
        found.append(json.loads(done.stdout))
    assert found[0][0] == [f"lowering.{n}" for n in ("lower", "planning", "fusion", "scheduling")]
    assert found[1] == [[], found[0][1]]


def test_keys_are_the_same_in_every_process() -> None:
    case = CASES["layer_norm"]
    program = tracegraph.jit(case.function).trace(*case.arguments).optimized
    assert len({program_key(program)[0] for _ in range(3)}) == 1
    assert sum(1 for _ in walk(program.body)) > 3
    text = keys.canonical_text({"b": frozenset({"y", "x"}), "a": (1, 2.5)})
    assert text == "{'a': (1, 2.5), 'b': {'x', 'y'}}"
