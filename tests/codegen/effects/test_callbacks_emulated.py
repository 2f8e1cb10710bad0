"""Callbacks as generated CUDA C++ that runs on the CPU, while a thread makes the calls."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from lowering.codegen import unit_source
from lowering.codegen.kernel_parameters import Answer, CallRingAddress, CallSiteNumber
from lowering.cuda.effects.call_ring import AnswerMemory, CallRing
from lowering.plan.nests.kernel import CallNest, PrintedArray
from lowering.plan.records.call_records import ANSWERED, ASKED
from lowering.testing.recording_driver import RecordingDriver
from tests.cases.kernels.by_hand import buffer, load, node, plan
from tests.comparisons.callbacks import (  # noqa: F401 - run here
    PROGRAMS,
    test_calls_and_answers_are_those_of_the_eager_run,
)
from tests.emulation.emulator import COMPILER, Emulator, Memory
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.scalar import Axis

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


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
