"""Executables of one graph, for addresses that calls come back to."""

import random
import sys
import weakref

import numpy as np
import pytest

from lowering.cuda.calls import stream_graph
from lowering.cuda.calls.replicas import MOST, UPDATES_PER_NODE
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.features import override
from lowering.testing.call_log import InjectedError
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.fakes.interrupts import InterruptError, interrupt_after, interrupted
from tests.programs.hand_made_plans import (
    SCALAR,
    VECTOR,
    copy_kernel,
    diamond,
    fan,
    nested_loops,
    plan,
    small_input,
)
from tracegraph.errors import ClosedError, UpdateError


class LaunchedDriver(RecordingDriver):
    """Keeps what the nodes of the executable that was launched last have."""

    refuses = None  # the operation that fails, if any

    def _log(self, operation, *detail):
        position = super()._log(operation, *detail)
        if operation == self.refuses:
            raise InjectedError(operation)
        return position

    def _launch(self, executable):
        super()._launch(executable)
        self.launched = list(executable.values.values())


class Called:
    """An executable on a recording driver, and what each call asks of it."""

    def __init__(self, made):
        self.driver = LaunchedDriver()
        self.backend = RecordingBackend(self.driver)
        self.executable = self.backend.compile(made)

    def buffer(self, type_=VECTOR):
        return self.backend.device.pool.buffer(type_)

    def __call__(self, *arguments):
        start = len(self.driver.calls)
        results = self.executable(list(arguments))
        self.asked = [call.operation for call in self.driver.calls[start:]]
        return results

    @property
    def executables(self):
        return self.driver.count("instantiate")

    def until_there_are(self, count, *arguments):
        """Call with arguments that take turns until there are so many executables."""
        while self.executables < count:
            for argument in arguments:
                self(argument)


def test_results_that_take_turns_need_no_updates():
    call = Called(diamond())
    x = call.buffer()
    for _ in range(50):
        results = call(x)  # while those of the call before are there
    assert call.asked == ["launch"]
    assert call.executables == 2
    assert x.pointer in call.driver.launched[0]
    assert results[0].pointer in call.driver.launched[3]


@pytest.mark.parametrize("period", range(1, MOST + 3))
def test_arguments_that_take_turns_need_no_updates_if_they_are_few(period):
    call = Called(diamond())
    xs = [call.buffer() for _ in range(period)]
    for turn in range(100 + 100 * period):
        x = xs[turn % period]
        call(x)
        assert x.pointer in call.driver.launched[0]
    if period <= MOST:
        assert (call.asked, call.executables) == (["launch"], period)
    assert call.executables <= MOST


@pytest.mark.parametrize("period", range(1, MOST + 3))
def test_executables_that_the_host_drives_have_addresses_of_their_own(period):
    with override(conditional_nodes=False):
        call = Called(diamond())
        xs = [call.buffer() for _ in range(period)]
        for turn in range(100 + 100 * period):
            x = xs[turn % period]
            (result,) = call(x)
            assert x.pointer in call.driver.launched[0]
            assert result.pointer in call.driver.launched[3]
    # with the results, addresses of three and more arguments come back too late for another one
    assert call.executables == (1 if period in (3, 5, 6) else max(period, 2))


def test_addresses_that_never_return_need_one_executable():
    call = Called(diamond())
    kept = []
    for _ in range(50):
        x = call.buffer()
        kept += [x, *call(x)]
    assert call.executables == 1


def test_another_is_made_when_updates_have_taken_as_long():
    call = Called(diamond())
    call.until_there_are(2, call.buffer(), call.buffer())
    nodes = len(call.driver.graphs[0].nodes)
    saved = call.executable.stats()["updates"] - UPDATES_PER_NODE * nodes
    assert 0 <= saved < 10


def launches(made, seed):
    """What nodes have at each of some launches, whose arguments are chosen at random."""
    choose, call = random.Random(seed), Called(made)
    types = call.executable.plan.in_types
    arrays = [[call.buffer(t) for _ in range(3)] for t in types]
    kept, launched = [], []
    for turn in range(200):
        given = [choose.choice(some[: 1 + turn // 50]) for some in arrays]
        for number, type_ in enumerate(types):
            if type_ == SCALAR and choose.random() < 0.5:
                given[number] = choose.randrange(2)
            elif choose.random() < 0.05:
                given[number] = np.full(type_.shape, turn, type_.dtype)
        kept = [call(*given), *kept[: choose.randrange(3)]]
        launched.append(call.driver.launched)
    return launched, call.executables


@pytest.mark.parametrize("make", [diamond, small_input, fan], ids=lambda make: make.__name__)
@pytest.mark.parametrize("seed", range(5))
def test_the_device_sees_what_it_sees_with_one_executable(make, seed, monkeypatch):
    launched, executables = launches(make(), seed)
    assert executables > 1
    monkeypatch.setattr(stream_graph, "MOST", 1)
    assert launches(make(), seed) == (launched, 1)


def test_graphs_with_conditional_nodes_have_one_executable():
    call = Called(nested_loops())
    for _ in range(100):
        results = call()
        results[0].synchronize()
    assert call.executables == 1


def test_no_call_waits_for_loops_in_order_to_save_updates():
    call = Called(diamond())
    loops = call.backend.compile(nested_loops())
    x, y = call.buffer(), call.buffer()
    call.driver.busy = True
    loops([])
    made = call.executables
    for _ in range(7):  # more would wait behind the loops
        call(x), call(y)
    assert call.executables == made
    call.driver.busy = False
    call.until_there_are(made + 1, x, y)


def test_without_room_for_another_calls_go_on_with_updates():
    call = Called(diamond())
    x, y = call.buffer(), call.buffer()
    call.driver.refuses = "instantiate"
    call.until_there_are(2, x, y)
    for _ in range(50):
        call(x), call(y)
    assert call.executables == 2  # it was asked for once
    assert "update_kernel" in call.asked
    assert y.pointer in call.driver.launched[0]


def test_after_a_refused_update_the_next_call_is_right():
    call = Called(diamond())
    x, y, z = (call.buffer() for _ in range(3))
    call.until_there_are(2, x, y)
    call.driver.refuses = "update_kernel"
    with pytest.raises(UpdateError):
        call(z)
    call.driver.refuses = None
    for argument in (z, x, y, z, y, x):
        call(argument)
        assert argument.pointer in call.driver.launched[0]


def test_all_are_closed():
    call = Called(diamond())
    x, y = call.buffer(), call.buffer()
    call.until_there_are(2, x, y)
    one = call.executable.memory()["graph"]
    assert len(call.driver.live_executables) == 2
    call.executable.close()
    assert call.driver.count("close") == 2
    with pytest.raises(ClosedError, match="diamond"):
        call(x)
    assert one > Called(diamond()).executable.memory()["graph"]


def test_all_go_with_the_function():
    call = Called(diamond())
    call.until_there_are(2, call.buffer(), call.buffer())
    made = [weakref.ref(executable) for executable in call.driver.live_executables]
    del call.executable
    assert [gone() for gone in made] == [None, None]


def one_result():
    """A number and a vector with a reader each. Where a result is dropped the next one will be."""
    s, x = Buffer("input", 0, SCALAR), Buffer("input", 1, VECTOR)
    y, kept = Buffer("output", 0, SCALAR), Buffer("scratch", 0, VECTOR)
    nodes = [copy_kernel(y, s, "scalar"), copy_kernel(kept, x, "vector")]
    return plan(nodes, (), [s, x], [y], [kept], name="one_result")


@pytest.mark.parametrize("seed", range(3))
def test_after_an_interrupt_the_next_call_is_right(seed):
    call, choose, interrupts = Called(one_result()), random.Random(seed), 0
    xs = [call.buffer() for _ in range(MOST + 2)]
    given = 0, xs[0]
    for _ in range(500):
        before, given = given, (choose.randrange(3), choose.choice(xs))
        sys.settrace(interrupt_after(choose.randrange(400), {"replicas", "address_updates"}))
        try:
            call(*given)
        except InterruptError:
            interrupts += 1
        finally:
            sys.settrace(None)
        another = choose.randrange(3), choose.choice(xs)
        number, x = given = choose.choice([before, given, another])
        call(number, x)
        assert number in call.driver.launched[0]
        assert x.pointer in call.driver.launched[2]
    assert interrupts > 100
    assert call.executables > 1


@pytest.mark.parametrize("kind", [int, np.int64], ids=lambda kind: kind.__name__)
def test_a_number_that_an_interrupted_call_has_written_is_passed_by_the_next(kind):
    call = Called(one_result())
    x, number = call.buffer(), 0

    def call_with_another():
        nonlocal number
        number += 1
        call(kind(number), x)

    for _ in interrupted(call_with_another, "arguments"):
        call(kind(number), x)
        assert number in call.driver.launched[0]
