"""Callbacks as generated CUDA C++ that runs on the CPU, while a thread makes the calls."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracegraph
from lowering.codegen import unit_source
from lowering.codegen.effects.call_records import ANSWERED, ASKED
from lowering.codegen.kernel_parameters import Answer, CallRingAddress, CallSiteNumber
from lowering.cuda.effects.call_ring import AnswerMemory, CallRing
from lowering.plan.nests.kernel import CallNest, PrintedArray
from lowering.testing.recording_driver import RecordingDriver
from tests.cases.kernels.by_hand import buffer, load, node, plan
from tests.emulation.emulator import COMPILER, Emulator, Memory
from tests.helpers.devices import Device
from tracegraph import ArrayType, debug, pure_callback, tree
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.scalar import Axis

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    ml_dtypes.bfloat16,
]

CALLS: list[Any] = []


def log(*args: Any, **kwargs: Any) -> None:
    CALLS.append((args, kwargs))


def like(x: Any) -> ArrayType:
    return ArrayType(np.dtype(x.dtype), x.shape)


def send_all(*arrays: Any) -> Any:
    for array in arrays:
        debug.callback(log, array, array[2], x=array[::-1])
    return arrays[0]


def answer_all(*arrays: Any) -> Any:
    def swap(x: Any, y: Any) -> Any:
        return y[::-1], x

    return [pure_callback(swap, (like(a), like(a[0])), a[1], a) for a in arrays]


def send_large(x: Any, small: Any) -> Any:
    debug.callback(log, x * 2, small, x[:0], x[:5000].T, x > 3)
    return x


def answer_large(x: Any) -> Any:
    return pure_callback(lambda x: (x + 1, x[:1]), (like(x), like(x[:1])), x)


def nested(x: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        def inner(j: Any, total: Any) -> Any:
            debug.callback(log, i, j, total=total)
            return total + pure_callback(lambda x, j: x[j], like(x[0]), x, j)

        total = tracegraph.fori_loop(0, i, inner, total)
        return tracegraph.cond(
            i % 2 == 0,
            lambda: (debug.callback(log, total, i), total + 1)[1],
            lambda: (debug.callback(log, total), pure_callback(np.negative, like(total), total))[1],
        )

    result = tracegraph.fori_loop(0, 4, row, np.float64(0.5))
    debug.callback(log, result)
    return result


def conditions(x: Any) -> Any:
    def goes_on(x: Any) -> Any:
        return pure_callback(lambda x: x.sum() < 40, ArrayType(np.dtype(bool)), x)

    return tracegraph.while_loop(goes_on, lambda x: x + 1.5, x)


def often(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        debug.callback(log, i, x)
        return pure_callback(lambda x: x + 1, like(x), x)

    return tracegraph.fori_loop(0, 60, step, x)


def lanes(x: Any) -> Any:
    def lane(x: Any) -> Any:
        def small() -> Any:
            debug.callback(log, x)
            return pure_callback(np.cos, like(x), x, vmap_method="sequential")

        return tracegraph.cond(x < 4, small, lambda: x)

    return tracegraph.vmap(lane)(x)


ARRAYS = tuple(np.array([1, 0, 3], dtype) for dtype in DTYPES)
LARGE = np.random.default_rng(0).normal(size=70_001)  # many frames, more than the ring has

PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "send all": (send_all, ARRAYS),
    "answer all": (answer_all, ARRAYS),
    "send large": (send_large, (LARGE, np.arange(3, dtype=np.int8))),
    "answer large": (answer_large, (LARGE,)),
    "nested": (nested, (np.arange(4.0),)),
    "conditions": (conditions, (np.arange(3.0),)),
    "often": (often, (np.arange(1000.0),)),
    "lanes": (lanes, (np.arange(6.0),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", [None, Random(0), Random(1)])
def test_calls_and_answers_are_those_of_the_eager_run(
    name: str, order: Random | None, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_CALLBACK_BUFFER_BYTES", "1")  # the least that there may be
    function, arguments = PROGRAMS[name]
    CALLS.clear()
    expected = function(*arguments)
    wanted = [*CALLS]
    CALLS.clear()
    result = device.run(name, *arguments, order=order)
    assert tree.structure(CALLS) == tree.structure(wanted)
    for got, known in zip(tree.leaves(CALLS), tree.leaves(wanted), strict=True):
        assert got.dtype == known.dtype
        np.testing.assert_array_equal(got, known)
    tree.map(np.testing.assert_array_equal, result, expected)


class Asking:
    """One kernel that asks for an answer, with a ring and an answer of its own."""

    def __init__(self, folder: Any, size: int = 3) -> None:
        self.x, self.y = buffer("float64", size), buffer("float64", size)
        sent = PrintedArray((size,), load(self.x, Axis.make(0, size)))
        self.node = node("ask", CallNest((), 0, (sent,), results=(self.y,)))
        self.emulator = Emulator(unit_source(plan(self.node)), folder)
        driver = RecordingDriver()
        self.ring = CallRing.allocate(driver)
        parameters = self.emulator.code(self.node).parameters
        (site,) = [p for p in parameters if isinstance(p, CallSiteNumber)]
        (answer,) = [p for p in parameters if isinstance(p, Answer)]
        self.answer = AnswerMemory(driver, answer.record)
        function = HostFunction("f", lambda x: (x,))
        self.site = self.ring.add_site(function, site.record, self.answer)
        self.emulator.channels = {
            CallRingAddress(): self.ring.memory.pointer,
            site: self.site.number,
            answer: self.answer.memory.pointer,
        }

    def run(self, value: float) -> np.ndarray[Any, Any]:
        memory = Memory()
        memory.put(self.x, np.full(self.x.type.shape, value))
        return self.emulator.run(self.node, memory)[self.y]


def test_a_kernel_that_waits_for_an_answer_gives_up_when_it_is_stopped(tmp_path: Any) -> None:
    kernel = Asking(tmp_path)
    stop = threading.Timer(0.05, lambda: kernel.emulator.stop.__setitem__(0, 1))
    stop.start()
    assert kernel.run(2.0).tolist() == [0.0] * 3
    stop.join()
    (late,) = kernel.ring.take()
    kernel.answer.give(late.number, (np.full(3, 7.0),))
    kernel.emulator.stop[0] = 0

    def reply() -> None:
        while not (calls := kernel.ring.take()):
            pass
        kernel.answer.give(calls[0].number, (calls[0].arrays[0] * 2,))

    replying = threading.Thread(target=reply)
    replying.start()
    assert kernel.run(3.0).tolist() == [6.0] * 3, "a late answer is not taken for another's"
    replying.join()
    words = kernel.answer.memory.bytes.view(np.uint64)
    assert (words[ASKED], words[ANSWERED]) == (2, 2)


def test_a_call_that_was_given_up_halfway_is_dropped(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEGRAPH_CALLBACK_BUFFER_BYTES", "1")
    kernel = Asking(tmp_path, size=20_000)  # more than the ring holds
    kernel.emulator.stop[0] = 1
    assert not kernel.run(1.0).any()
    assert kernel.ring.head > 0
    assert kernel.ring.take() == []
    kernel.emulator.stop[0] = 0

    def reply() -> None:
        while not (calls := kernel.ring.take()):
            pass
        kernel.answer.give(calls[0].number, calls[0].arrays)

    replying = threading.Thread(target=reply)
    replying.start()
    np.testing.assert_array_equal(kernel.run(2.0), np.full(20_000, 2.0))
    replying.join()


def test_an_answer_without_results_gives_zeros(tmp_path: Any) -> None:
    kernel = Asking(tmp_path)

    def refuse() -> None:
        while not (calls := kernel.ring.take()):
            pass
        kernel.answer.give(calls[0].number, None)

    refusing = threading.Thread(target=refuse)
    refusing.start()
    assert kernel.run(2.0).tolist() == [0.0] * 3
    refusing.join()


def test_what_a_gone_site_sent_is_dropped(tmp_path: Any) -> None:
    kernel = Asking(tmp_path)
    kernel.emulator.stop[0] = 1
    kernel.run(1.0)
    del kernel.site
    assert kernel.ring.take() == []
    assert kernel.ring.head == kernel.ring.tail
