"""Donated arguments on the host: overwritten where nobody else has them, else left alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.host.result_pool import LEAST_BYTES
from lowering.native.compilation.background import in_background
from tracegraph import Array, errors
from tracegraph.staging.calls.fast_call import MOST_LEAVES

pytestmark = pytest.mark.usefixtures("each_host")


def step(x: Any) -> Any:
    return x * 2 + 1


def fresh(*values: float) -> Array:
    """An Array whose memory nobody else has."""
    return Array(np.array(values))


def large(*values: float) -> Array:
    """The same, in memory that results of others may have been in: of 1 MiB."""
    made: Array = tracegraph.jit(lambda x: np.tile(x, LEAST_BYTES // x.nbytes), device="host")(
        np.array(values)
    )
    return made


def wait_for_the_compiler() -> None:
    """Wait until no thread compiles, here or for an earlier test: its memory would be counted."""
    done = Event()
    in_background(done.set)
    assert done.wait(60)


def address(array: Any) -> int:
    return int(np.asarray(array).ctypes.data)


def donating(function: Callable[..., Any], positions: Any = 0) -> Any:
    return tracegraph.jit(function, donate_argnums=positions, device="host")


@pytest.mark.parametrize("make", [lambda: fresh(1.0, 2.0), lambda: large(1.0, 2.0)])
def test_a_result_is_in_the_memory_of_the_argument(make: Callable[[], Array]) -> None:
    f = donating(step)
    x = make()
    memory = address(x)
    for _ in range(3):
        x = f(x)
        assert address(x) == memory
    np.testing.assert_array_equal(x[:2], [15.0, 23.0])
    assert not np.asarray(x).flags.writeable
    assert f.stats()["bytes_copied"] == 0


@pytest.mark.parametrize("way", ["positional", "keyword", "tree", "compiled", "numbers beside"])
def test_no_way_of_passing_it_costs_a_copy(way: str) -> None:
    f = donating(lambda state, n=1.0: tracegraph.tree.map(lambda x: x + n, state))
    state: Any = {"x": fresh(1.0)} if way == "tree" else fresh(1.0)
    for _ in range(3):
        match way:
            case "keyword":
                state = f(state=state)
            case "compiled":
                compiled = f.lower(state).compile()
                state = compiled(state)
                assert compiled.stats()["bytes_copied"] == 0
            case "numbers beside":
                state = f(state, 2.0)
            case _:
                state = f(state)
    assert f.stats()["bytes_copied"] == 0


def test_calls_of_two_kinds_in_turns_cost_no_copy() -> None:
    f = donating(step)
    one, two = fresh(1.0), fresh(1.0, 2.0)
    for _ in range(3):
        one, two = f(one), f(two)
    np.testing.assert_array_equal(two, [15.0, 23.0])
    assert f.stats()["bytes_copied"] == 0


def test_a_call_with_many_arguments_costs_no_copy() -> None:
    f = donating(lambda *xs: tuple(x + 1 for x in xs), range(MOST_LEAVES + 1))
    xs = tuple(fresh(float(i)) for i in range(MOST_LEAVES + 1))
    for _ in range(3):
        xs = f(*xs)
    np.testing.assert_array_equal(xs[-1], [MOST_LEAVES + 3.0])
    assert f.stats()["bytes_copied"] == 0


@pytest.mark.parametrize("read", [False, True])
def test_the_result_over_an_argument_in_another_order_is_row_major(read: bool) -> None:
    f = donating(lambda x, y: (x if read else y) + 1)
    y = np.arange(6.0).reshape(2, 3)
    for _ in range(3):
        data = np.asarray(f(Array(np.array(y, order="F")), y))
        np.testing.assert_array_equal(data, y + 1)
        assert data.flags.c_contiguous


def test_a_chain_holds_one_state() -> None:
    f = donating(lambda x: x + 1)
    x = Array(np.zeros(1 << 20))
    for _ in range(2):  # the second call has full code compiled
        f(Array(np.zeros(1 << 20)))
    wait_for_the_compiler()
    tracemalloc.start()
    try:
        for _ in range(100):
            x = f(x)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert (np.asarray(x) == 100).all()


HOLDERS: dict[str, Callable[[Array], Any]] = {
    "the ndarray": np.asarray,
    "a view": lambda x: np.asarray(x)[1:],
    "a buffer": lambda x: memoryview(np.asarray(x)),
    "another Array": lambda x: Array(x.data),
    "part of it": lambda x: x[:],
    "DLPack": np.from_dlpack,
}


@pytest.mark.parametrize("make", [lambda: fresh(1.0, 2.0), lambda: large(1.0, 2.0)])
@pytest.mark.parametrize("holder", HOLDERS)
def test_what_somebody_else_has_keeps_its_elements(holder: str, make: Callable[[], Array]) -> None:
    f = donating(step)
    x = make()
    held, nbytes = HOLDERS[holder](x), x.nbytes
    before = np.array(held)
    result = f(x)
    np.testing.assert_array_equal(result[:2], [3.0, 5.0])
    np.testing.assert_array_equal(held, before)
    assert f.stats()["bytes_copied"] == nbytes
    with pytest.raises(errors.DonatedArrayError):
        np.asarray(x)
    del held
    f(result)
    assert f.stats()["bytes_copied"] == nbytes


def test_an_ndarray_and_a_view_of_one_are_never_written_to() -> None:
    f = donating(step)
    data = np.array([1.0, 2.0, 3.0])
    f(data)
    for part in (slice(None, None, 2), slice(1, 4)):
        base = np.arange(6.0)
        f(Array(base[part]))
        np.testing.assert_array_equal(base, np.arange(6.0))
    np.testing.assert_array_equal(data, [1.0, 2.0, 3.0])
    assert data.flags.writeable
    assert f.stats()["bytes_copied"] >= 48


def test_numbers_can_be_donated() -> None:
    f = donating(step)
    assert f(3.0) == 7.0
    assert f(np.float64(3.0)) == 7.0


def test_one_array_twice_is_refused_and_stays_valid() -> None:
    f = donating(lambda x, y: (x + y, x - y), (0, 1))
    x = fresh(1.0)
    for other in (x, Array(x.data)):
        with pytest.raises(errors.DonatedArrayError, match="as two arguments"):
            f(x, other)
    np.testing.assert_array_equal(f(x, fresh(2.0)), [[3.0], [-1.0]])


def test_a_call_that_does_not_start_leaves_its_arguments() -> None:
    f = donating(step)
    compiled = f.lower(fresh(1.0)).compile()
    x = fresh(1.0)
    compiled.close()
    with pytest.raises(errors.ClosedError):
        compiled(x)
    with pytest.raises(errors.ArgumentTypesError):
        f.lower(fresh(1.0, 2.0)).compile()(x)
    assert f(x) == 3.0


def endless(x: Any) -> Any:
    return tracegraph.while_loop(lambda c: c[0] >= 0, lambda c: c + 1, x, max_steps=5)


def test_a_call_that_fails_while_it_runs_has_spent_its_arguments() -> None:
    f = donating(endless)
    x = fresh(1.0)
    with pytest.raises(errors.StepLimitError):
        f(x)
    with pytest.raises(errors.DonatedArrayError, match="donated"):
        np.asarray(x)
    assert f(fresh(-1.0)) == -1.0


def test_what_was_copied_survives_a_failure() -> None:
    f = donating(endless)
    x = fresh(1.0)
    held = np.asarray(x)
    with pytest.raises(errors.StepLimitError):
        f(x)
    assert x == 1.0
    assert held == 1.0


def test_results_that_are_not_written_over_it_leave_the_argument_as_it_was() -> None:
    f = donating(lambda x: x[::-1] * 2)
    x = fresh(1.0, 2.0)
    memory = x.data
    result = f(x)
    np.testing.assert_array_equal(result, [4.0, 2.0])
    np.testing.assert_array_equal(memory, [1.0, 2.0])
    assert f.stats()["bytes_copied"] == 0
