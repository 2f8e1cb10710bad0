"""Prints, checks, counts and the stop flag, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowering.codegen import unit_source
from lowering.codegen.kernel_parameters import (
    FailureWord,
    PrintSiteNumber,
    StepCount,
    StopFlagAddress,
)
from lowering.cuda.effects.mailbox import Mailbox
from lowering.cuda.effects.print_ring import PrintRing
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nests.kernel import (
    MapNest,
    PrintedArray,
    PrintNest,
    Publish,
    Require,
    SetCondition,
)
from lowering.plan.nodes import Graph
from lowering.plan.plan import Plan
from lowering.testing.recording_driver import RecordingDriver
from tests.cases.kernels.by_hand import buffer, load, node, plan
from tests.comparisons.prints import (  # noqa: F401 - run here
    PROGRAMS,
    test_prints_are_those_of_the_eager_run,
)
from tests.emulation.emulator import COMPILER, Emulator, Memory
from tracegraph.ir.effects import PrintFormat
from tracegraph.ir.scalar import Axis

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs g++")


class Signals:
    """One kernel with signals, run by the emulator with a mailbox."""

    def __init__(self, folder: Any, *signals: Any, loop: int | None = None) -> None:
        self.flag, self.number = buffer("bool"), buffer("int32")
        values = {Require: load(self.flag), SetCondition: load(self.flag)}
        nest = MapNest(
            (), (), tuple(kind(i, values.get(kind, load(self.number))) for kind, i in signals)
        )
        self.node = node("step", nest)
        loops = () if loop is None else (WhileNode(loop, Graph((), frozenset())),)
        graph = Graph((self.node, *loops), frozenset())
        self.emulator = Emulator(unit_source(Plan("test", graph, (), (), (), {}, 0, 64)), folder)
        self.mailbox = Mailbox(RecordingDriver(), 2)
        self.emulator.channels = {
            FailureWord(): self.mailbox.failure_address,
            StepCount(0): self.mailbox.count_address(0),
            StepCount(1): self.mailbox.count_address(1),
        }

    def run(self, flag: bool, number: int = 0) -> None:
        memory = Memory()
        memory.put(self.flag, flag)
        memory.put(self.number, number)
        self.emulator.run(self.node, memory)


def test_the_first_failure_is_kept_until_it_is_taken(tmp_path: Any) -> None:
    kernel = Signals(tmp_path, (Require, 4), (Require, 2))
    kernel.run(True)
    assert kernel.mailbox.take_failure() is None
    kernel.run(False)
    kernel.run(True)
    assert kernel.mailbox.take_failure() == 4
    assert kernel.mailbox.take_failure() is None


def test_counts_are_published_each_in_its_word(tmp_path: Any) -> None:
    kernel = Signals(tmp_path, (Publish, 1))
    kernel.run(True, 7)
    assert (kernel.mailbox.count(0), kernel.mailbox.count(1)) == (0, 7)
    kernel.mailbox.reset_counts()
    assert kernel.mailbox.count(1) == 0


def test_the_stop_flag_ends_loops_and_nothing_else(tmp_path: Any) -> None:
    kernel = Signals(tmp_path, (SetCondition, 3), (SetCondition, 5), loop=3)
    kernel.run(True)
    assert [kernel.emulator.conditions[i] for i in (3, 5)] == [1, 1]
    kernel.emulator.stop[0] = 1
    kernel.run(True)
    assert [kernel.emulator.conditions[i] for i in (3, 5)] == [0, 1]


def test_only_kernels_that_decide_about_loops_read_the_stop_flag() -> None:
    flag = load(buffer("bool"))
    branch = node("branch", MapNest((), (), (SetCondition(5, flag),)))
    again = node("again", MapNest((), (), (SetCondition(3, flag),)))
    unit = unit_source(
        Plan(
            "test",
            Graph((branch, again, WhileNode(3, Graph((), frozenset()))), frozenset()),
            *((), (), (), {}, 0, 6),
        )
    )
    assert StopFlagAddress() not in unit.kernels[branch].parameters
    assert StopFlagAddress() in unit.kernels[again].parameters
    assert unit.source.count("= *stop0;") == 1


def test_what_does_not_fit_the_ring_is_lost_counted_and_reported_once(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACEGRAPH_PRINT_BUFFER_BYTES", "256")
    x = buffer("float64", 7)
    element = load(x, Axis.make(0, 7))
    show = node("show", PrintNest((), 0, (PrintedArray((7,), element),)))
    emulator = Emulator(unit_source(plan(show)), tmp_path)
    ring, site = PrintRing.allocate(RecordingDriver()), emulator.code(show).parameters[-1]
    assert isinstance(site, PrintSiteNumber)
    known = ring.add_site(PrintFormat("{}", 1, (), None), site.record)
    emulator.channels = {emulator.code(show).parameters[-2]: ring.memory.pointer, site: 1}
    assert known.number == 1
    memory = Memory()
    for value in range(5):
        memory.put(x, np.full(7, float(value)))
        emulator.run(show, memory)
    ring.show()
    lines = "".join(f"{np.full(7, float(value))}\n" for value in range(3))
    assert capsys.readouterr().out == lines
    with pytest.warns(RuntimeWarning, match="2 prints were lost"):
        ring.warn_of_losses()
    ring.warn_of_losses()
    emulator.run(show, memory)
    ring.show()
    assert capsys.readouterr().out == f"{np.full(7, 4.0)}\n"
