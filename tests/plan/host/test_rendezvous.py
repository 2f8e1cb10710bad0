"""Devices of a host mesh meet in collectives in any order of arrival, and none waits for ever."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tracegraph
from lowering.backends.host import HostBackend
from lowering.backends.mesh import MeshBackend
from lowering.plan.calls.collectives import CollectiveCall
from lowering.plan.calls.rendezvous import Arrival, Rendezvous
from lowering.plan.nodes import LibraryNode, walk
from tracegraph import Mesh, PartitionSpec, errors, shard

P = PartitionSpec
LINE = Mesh(4, "x", device="host")
X = np.random.default_rng(0).standard_normal((8, 3))
each_host = pytest.mark.usefixtures("each_host")


def together(rendezvous: Rendezvous, *devices: Callable[[], None]) -> list[BaseException | None]:
    """What each device raises, each in a thread."""
    failures: list[BaseException | None] = [None] * len(devices)

    def run(number: int) -> None:
        try:
            devices[number]()
        except BaseException as failure:
            failures[number] = failure
        rendezvous.leave(number, failures[number] is not None)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(devices))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def arrival(group: tuple[int, ...], name: str, source: Any = 1.0) -> Arrival:
    array = np.array(source)
    return Arrival(group, (name, array.shape), name, [array], [np.empty_like(array)])


def total(sources: Any) -> Any:
    return [[sum(each for (each,) in sources)]] * len(sources)


def test_groups_are_lines_of_the_mesh() -> None:
    meeting = Rendezvous({"x": 2, "y": 3})
    assert meeting.group(4, ["x"]) == (1, 4)
    assert meeting.group(4, ["y"]) == (3, 4, 5)
    assert meeting.group(4, ["x", "y"]) == tuple(range(6))


def test_devices_in_different_collectives_get_an_error_with_both() -> None:
    meeting = Rendezvous({"x": 2})
    both = (0, 1)
    failures = together(
        meeting,
        lambda: meeting.meet(0, arrival(both, "all-reduce at a.py:1"), total),
        lambda: meeting.meet(1, arrival(both, "all-gather at a.py:2"), total),
    )
    for failure in failures:
        assert isinstance(failure, errors.DeadlockError)
        assert "device 0: waits in all-reduce at a.py:1" in str(failure)
        assert "device 1: waits in all-gather at a.py:2" in str(failure)


def test_devices_of_other_shapes_get_an_error() -> None:
    meeting = Rendezvous({"x": 2})
    failures = together(
        meeting,
        lambda: meeting.meet(0, arrival((0, 1), "sum"), total),
        lambda: meeting.meet(1, arrival((0, 1), "sum", [1.0, 2.0]), total),
    )
    assert all(isinstance(failure, errors.DeadlockError) for failure in failures)


def test_nobody_waits_for_a_device_that_is_done() -> None:
    meeting = Rendezvous({"x": 3})
    everyone = (0, 1, 2)
    failures = together(
        meeting,
        lambda: meeting.meet(0, arrival(everyone, "sum at a.py:1"), total),
        lambda: meeting.meet(1, arrival(everyone, "sum at a.py:1"), total),
        lambda: None,
    )
    assert failures[2] is None
    for failure in failures[:2]:
        assert isinstance(failure, errors.DeadlockError)
        assert "device 2: is done" in str(failure)


def test_lines_that_wait_for_one_another_get_an_error() -> None:
    """Each waits along another axis of the mesh: no group is complete."""
    meeting = Rendezvous({"x": 2, "y": 2})
    failures = together(
        meeting,
        lambda: meeting.meet(0, arrival((0, 1), "along y"), total),
        lambda: meeting.meet(1, arrival((1, 3), "along x"), total),
        lambda: meeting.meet(2, arrival((0, 2), "along x"), total),
        lambda: meeting.meet(3, arrival((2, 3), "along y"), total),
    )
    assert all(isinstance(failure, errors.DeadlockError) for failure in failures)


def test_others_learn_that_a_device_has_failed() -> None:
    meeting = Rendezvous({"x": 2})

    def fail() -> None:
        raise RuntimeError("own")

    failures = together(meeting, lambda: meeting.meet(0, arrival((0, 1), "sum"), total), fail)
    assert isinstance(failures[0], errors.PeerFailedError)
    assert "device 1 has failed" in str(failures[0])


def many(x: Any) -> Any:
    """Independent collectives, in a loop and beside it."""

    def step(i: Any, state: Any) -> Any:
        x, low, high = state
        around = [(k, (k + 1) % 4) for k in range(4)]
        moved = tracegraph.ppermute(x, "x", around)
        return moved, tracegraph.pmin(low + x[0], "x"), tracegraph.pmax(high - x[0], "x")

    looped = tracegraph.fori_loop(0, 5, step, (x, x[1], 2 * x[1]))
    total = tracegraph.psum(np.cos(x), "x")
    every = tracegraph.all_gather(x[0], "x")
    return (*looped, total, every)


MANY = shard(many, mesh=LINE, in_specs=P("x"), out_specs=(P("x"), P("x"), P("x"), P(), P()))


@each_host
def test_collectives_have_one_order_whatever_the_order_of_nodes() -> None:
    lowered = tracegraph.jit(MANY).lower(X)
    calls = [n.call for n in walk(lowered.plan.graph) if isinstance(n, LibraryNode)]
    kinds = [len(call.kinds) for call in calls if isinstance(call, CollectiveCall)]
    assert sum(kinds) >= 5
    assert max(kinds) > 1, "some are carried out at once"
    wanted = [np.asarray(x) for x in tracegraph.jit(MANY)(X)]
    for seed in range(8):
        backend = MeshBackend(LINE, [HostBackend(order=Random(seed), poison=True)] * 4)
        found = backend.compile(lowered.plan)([X])
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x.to_host(), y, 1e-12)


def test_without_that_order_devices_are_caught() -> None:
    """Each device has its own order: an error, and no deadlock."""
    from lowering.plan.nodes import Graph
    from tracegraph.ir.record import replace

    def fun(x: Any) -> Any:
        return tuple(tracegraph.psum(x[i], "x") for i in range(6))

    mapped = shard(fun, mesh=LINE, in_specs=P("x"), out_specs=(P(),) * 6)
    with mock.patch("lowering.planning.assemble.with_groups", lambda graph: graph):
        plan = tracegraph.jit(mapped).lower(np.ones((24, 3))).plan
    nodes = plan.graph.nodes
    order = {
        (i, j)
        for i, j in plan.graph.edges
        if not all(isinstance(nodes[k], LibraryNode) for k in (i, j))
    }
    plan = replace(plan, graph=Graph(nodes, frozenset(order)))
    caught = list[str]()
    for seed in range(10):
        backend = MeshBackend(LINE, [HostBackend(order=Random(seed))] * 4)
        try:
            backend.compile(plan)([np.ones((24, 3))])
        except errors.DeadlockError as error:
            caught.append(str(error))
    assert len(caught) > 5
    assert all("different collectives" in text for text in caught)
    assert all("test_rendezvous.py:" in text for text in caught)


@each_host
def test_a_check_that_fails_on_one_device_ends_all() -> None:
    def fun(x: Any) -> Any:
        own = tracegraph.while_loop(lambda y: y[0] < 1e9, lambda y: 2 * y, x, max_steps=40)
        return tracegraph.psum(own, "x")

    jitted = tracegraph.jit(shard(fun, mesh=LINE, in_specs=P("x"), out_specs=P()))
    jitted(np.ones(4))
    with pytest.raises(errors.StepLimitError):
        jitted(np.array([1.0, 1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(np.asarray(jitted(np.ones(4))), [4 * 2.0**30])


@each_host
def test_loops_without_collectives_end_as_well() -> None:
    """Device 2 fails; the loops of the others would never end."""

    def fun(x: Any) -> Any:
        own = tracegraph.while_loop(lambda y: y[0] > 0, lambda y: y + 1, x)
        return tracegraph.while_loop(lambda y: y[0] < 9, lambda y: y + 1, own, max_steps=2)

    jitted = tracegraph.jit(shard(fun, mesh=LINE, in_specs=P("x"), out_specs=P("x")))
    with pytest.raises(errors.StepLimitError) as caught:
        jitted(np.array([1.0, 1.0, -1.0, 1.0]))
    assert caught.value.__notes__[-1].startswith("on device 2 of Mesh(")


@each_host
def test_an_interrupt_ends_all_devices() -> None:
    def fun(x: Any) -> Any:
        return tracegraph.while_loop(lambda y: y[0] > 0, lambda y: y + 1, x)

    jitted = tracegraph.jit(shard(fun, mesh=LINE, in_specs=P("x"), out_specs=P("x")))
    jitted(-np.ones(4))
    for x in (np.ones(4), np.array([-1.0, 1.0, 1.0, 1.0])):  # the first device runs, or is done
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            jitted(x)
        timer.join()
    jitted(-np.ones(4))


@each_host
def test_a_time_limit_ends_loops_on_all_devices() -> None:
    def fun(x: Any) -> Any:
        def step(x: Any) -> Any:
            return tracegraph.psum(x, "x") * 0 + x

        return tracegraph.while_loop(lambda x: tracegraph.pmax(x[0], "x") > 0, step, x)

    jitted = tracegraph.jit(shard(fun, mesh=LINE, in_specs=P("x"), out_specs=P("x")))
    with tracegraph.time_limit(0.2), pytest.raises(errors.TimeLimitError):
        jitted(np.ones(4))
    np.testing.assert_array_equal(np.asarray(jitted(-np.ones(4))), -np.ones(4))


@each_host
def test_threads_may_launch_at_once() -> None:
    jitted = tracegraph.jit(MANY)
    wanted = [np.asarray(x) for x in jitted(X)]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(jitted(X))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        for x, y in zip(each, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(x), y)


@each_host
def test_what_devices_print_and_count() -> None:
    def fun(x: Any) -> Any:
        tracegraph.debug.print("sum {s}", s=tracegraph.psum(x[0], "x"))
        return x

    jitted = tracegraph.jit(
        shard(fun, mesh=Mesh(2, "x", device="host"), in_specs=P("x"), out_specs=P("x"))
    )
    jitted(np.ones(2))
    stats = jitted.stats()
    assert (stats["launches"], stats["builds"]) == (1, 1)
    assert jitted.last_call() is not None
    assert "all-reduce" in str(jitted.lower(np.ones(2)))
    assert jitted.lower(np.ones(2)).explain()
    jitted.forget()
    jitted(np.ones(2))
