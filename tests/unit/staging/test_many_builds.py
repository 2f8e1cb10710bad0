"""Functions called with many types: a limit of what is kept, and a warning of what changes."""

from __future__ import annotations

import pickle
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.helpers.threads import collect_garbage
from tracegraph import errors, jit
from tracegraph.arrays.device_calls import _identity
from tracegraph.staging.retraces import WARNED_BUILDS


def sizes(f: Any) -> list[str]:
    return [program.arguments for program in f.programs()]


# ---- the limit ----


def test_the_least_recently_used_program_is_dropped() -> None:
    f = jit(lambda x: x + 1, device="host", max_builds=3)
    for n in (1, 2, 3):
        f(np.ones(n))
    f(np.ones(1))
    f(np.ones(4))
    assert sorted(sizes(f)) == ["f64[1]", "f64[3]", "f64[4]"]
    assert f.stats()["dropped"] == 1
    assert f.stats()["launches"] == 5


def test_what_was_dropped_is_built_again() -> None:
    f = jit(lambda x: x * 2, device="host", max_builds=1)
    for _ in range(3):
        for n in (1, 2):
            np.testing.assert_array_equal(f(np.ones(n)), np.full(n, 2.0))
    stats = f.stats()
    assert (stats["traces"], stats["builds"], stats["dropped"], stats["launches"]) == (6, 6, 5, 6)
    assert stats["evictions"] == 0


@pytest.mark.parametrize("call", [lambda f, x: f(x), lambda f, x: f({"x": x}), lambda f, x: f(x=x)])
def test_nothing_of_a_dropped_program_stays(call: Any) -> None:
    f = jit(lambda x: tracegraph.tree.leaves(x)[0] + 1, device="host", max_builds=2)
    built: dict[int, weakref.ref[Any]] = {}
    for n in range(1, 8):
        call(f, np.ones(n))
        built |= {id(each): weakref.ref(each) for each in f._builds.executables.values()}
    collect_garbage()
    assert sum(each() is not None for each in built.values()) == 2


def test_static_values_of_dropped_programs_are_released() -> None:
    class Option:
        pass

    f = jit(lambda x, option: x + 1, device="host", static_argnums=1, max_builds=2)
    options = []
    for _ in range(6):
        option = Option()
        options.append(weakref.ref(option))
        f(1.0, option)
        del option
    collect_garbage()
    assert [option() is not None for option in options] == [False] * 4 + [True] * 2


def test_warming_counts_as_a_use() -> None:
    f = jit(lambda x: x + 1, device="host", max_builds=2)
    for n in (1, 2, 3):
        f.warm(tracegraph.ArrayType("float64", (n,)))
    assert sizes(f) == ["f64[2]", "f64[3]"]


def test_without_a_limit_all_are_kept() -> None:
    f = jit(lambda x: x + 1, device="host", max_builds=None)
    for n in range(20):
        f(np.ones(n))
    assert len(f.programs()) == 20
    assert f.stats()["dropped"] == 0


def test_the_limit_is_an_option_of_copies_too() -> None:
    f = jit(_halved, max_builds=1)
    for g in (f.on_device("host"), pickle.loads(pickle.dumps(f))):
        for n in (1, 2, 3):
            g(np.ones(n))
        assert len(g.programs()) == 1


def _halved(x: Any) -> Any:
    return x / 2


def test_threads_with_more_types_than_are_kept() -> None:
    f = jit(lambda x: x.sum(), device="host", max_builds=2)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(60):
                n = 1 + (number + step) % 5
                assert float(f(np.ones(n))) == n
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.RetraceWarning)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures
    assert len(f.programs()) == 2
    assert f.stats()["launches"] == 240


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), (2.0, TypeError), (True, TypeError)])
def test_a_limit_that_is_none(limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"max_builds is .*got {limit}"):
        jit(lambda x: x, max_builds=limit)


# ---- the warning ----


def called_often(f: Any, arguments: Any, times: int = WARNED_BUILDS) -> errors.RetraceWarning:
    with warnings.catch_warnings(record=True, action="always") as caught:
        for number in range(1, times + 1):
            args, kwargs = arguments(number)
            f(*args, **kwargs)
    (warning,) = caught
    assert warning.filename == __file__
    message = warning.message
    assert isinstance(message, errors.RetraceWarning)
    return message


def step(state: Any, dt: Any = 1.0, order: Any = 1) -> Any:
    return tracegraph.tree.map(lambda x: x * dt, state)


@pytest.mark.parametrize(
    ("arguments", "changing", "text"),
    [
        (
            lambda n: (({"v": [np.ones(2), np.ones(n)]},), {}),
            ("state['v'][1]", "shape"),
            "the shape of argument state['v'][1] has changed in 63 of them: pad it",
        ),
        (
            lambda n: ((np.ones(3, ["f4", "f8"][n % 2]), np.ones((n, 1))), {}),
            ("state", "dtype"),
            "the dtype of argument state has changed in 63 of them",
        ),
        (
            lambda n: ((1.0,), {"order": n}),
            ("order", "static value"),
            "the value of static argument order has changed in 63 of them: pass it as",
        ),
        (
            lambda n: (([1.0] * n,), {"dt": 2.0}),
            ("state", "structure"),
            "the structure of argument state has changed in 63 of them",
        ),
        (
            lambda n: ((1.0,), {"dt": np.ones((n,) * (1 + n % 2))}),
            ("dt", "shape"),
            "dt: f64[63,63] -> f64[64]. jitted",
        ),
    ],
    ids=lambda case: case[0] if isinstance(case, tuple) else None,
)
def test_a_warning_names_the_argument_that_keeps_changing(
    arguments: Any, changing: Any, text: str
) -> None:
    f = jit(step, device="host", static_argnames="order")
    warning = called_often(f, arguments)
    assert (*changing, 63) in warning.changing
    assert text in str(warning)
    assert str(warning).startswith("step (test_many_builds.py:")
    assert f.stats()["builds"] == WARNED_BUILDS


def test_what_changes_now_and_then_is_not_named() -> None:
    f = jit(lambda x, y: x.sum() + y.sum(), device="host")
    warning = called_often(f, lambda n: ((np.ones(n), np.ones(n // 16)), {}))
    assert [where for where, _, _ in warning.changing] == ["x"]


def test_it_comes_once_and_not_before() -> None:
    f = jit(lambda x: x + 1, device="host")
    for n in range(WARNED_BUILDS - 1):
        f(np.ones(n))
    for _ in range(200):
        f(np.ones(1))
    with pytest.warns(errors.RetraceWarning):
        f(np.ones(WARNED_BUILDS))
    for n in range(WARNED_BUILDS + 1, 3 * WARNED_BUILDS):
        f(np.ones(n))


def test_the_call_can_be_made_again_where_warnings_are_errors() -> None:
    f = jit(lambda x: x + 1, device="host")
    for n in range(WARNED_BUILDS - 1):
        f(np.ones(n))
    with pytest.raises(errors.RetraceWarning, match="the shape of argument x"):
        f(np.ones(100))
    np.testing.assert_array_equal(f(np.ones(100)), np.full(100, 2.0))
    assert f.stats()["builds"] == WARNED_BUILDS


def test_programs_that_are_dropped_count_too() -> None:
    f = jit(lambda x: x + 1, device="host", max_builds=2)
    warning = called_often(f, lambda n: ((np.ones(1 + n % 3),), {}))
    assert warning.changing[0][:2] == ("x", "shape")


def test_the_changes_that_are_listed_are_the_last() -> None:
    f = jit(lambda x: x + 1, device="host", max_builds=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.RetraceWarning)
        for n in range(1200):
            f(np.ones(1 + n % 2))
    retraces = f.stats()["retraces"]
    assert len(retraces) == 1000
    assert set(retraces) == {"x: f64[1] -> f64[2]", "x: f64[2] -> f64[1]"}


def test_copies_of_many_types_are_not_warned_of() -> None:
    copy = jit(_identity, device="host")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(WARNED_BUILDS + 2):
            copy(np.ones(n))
    assert copy.stats()["builds"] == WARNED_BUILDS + 2
