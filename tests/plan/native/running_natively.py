"""Functions run as native code, whatever TRACEGRAPH_HOST says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from lowering.backends.host import TARGET
from lowering.host.choice import VARIABLE
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.native.compilation.compiler import Level
from lowering.plan.plan import Plan
from tests.helpers.devices import Programs
from tests.helpers.running import traced
from tracegraph import tree

Function = Callable[..., Any]


def native_plan(function: Function, *arguments: Any, donated: Sequence[int] = ()) -> Plan:
    """The plan of a function for native code."""
    stage = traced(function, *arguments, donated=donated)
    leaves = stage.signature.donated_leaves(stage.key.structure)
    return lower(stage.optimized, TARGET, leaves)


def compiled(
    plan: Plan, order: Random | None = None, poison: bool = True, level: Level = "full"
) -> HostExecutable:
    """The machine code of a plan: what calls run until the executable is uploaded is `level`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "native")
        patch.setattr("lowering.native.executable.first_level", lambda plan: level)
        return HostExecutable(plan, poison=poison, order=order)


def native(function: Function, *arguments: Any, level: Level = "full") -> Any:
    """Runs a function as native code, in memory that nobody has written."""
    stage = traced(function, *arguments)
    executable = compiled(lower(stage.optimized, TARGET), level=level)
    return tree.unflatten(stage.out_structure, list(executable(tree.leaves(arguments))))


class NativeDevice:
    """Runs programs of a module as native code, in memory that nobody has written.

    Quick code runs, and of every third program full code, too, which takes longer to compile: the
    bits are the same.
    """

    inexact: Collection[str] = ()
    times = 1
    """How often the last program ran."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def run(self, name: str, *arguments: Any, order: Random | None = None) -> Any:
        """The results; with an `order`, of code with the nodes in a random one."""
        function, given = self._programs[name]
        stage = traced(function, *given)
        executable = compiled(lower(stage.optimized, TARGET), order, level="quick")
        found = [*executable(tree.leaves(arguments))]
        self.times = 2 if crc32(name.encode()) % 3 == 0 else 1
        if self.times == 2:
            executable.upload()
            for one, other in zip(found, executable(tree.leaves(arguments)), strict=True):
                assert_same_bits(one, other)
        return tree.unflatten(stage.out_structure, found)


def assert_same_bits(one: Any, other: Any) -> None:
    """Fail unless two arrays have the same bits; any NaN is like any other."""
    arrays = [np.atleast_1d(one), np.atleast_1d(other)]
    floats = [x.view(x.real.dtype) if x.dtype.kind == "c" else x for x in arrays]
    bits = [np.where(each != each, each.dtype.type(0), each).tobytes() for each in floats]
    assert bits[0] == bits[1], f"bits differ:\n{one}\n{other}"
    assert ((floats[0] != floats[0]) == (floats[1] != floats[1])).all()
