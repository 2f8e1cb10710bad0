"""Functions run as native code, whatever TRACEGRAPH_HOST says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any

import pytest

from lowering.backends.host import TARGET
from lowering.host.choice import VARIABLE
from lowering.host.executable import HostExecutable
from lowering.lower import lower
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


def compiled(plan: Plan, order: Random | None = None, poison: bool = True) -> HostExecutable:
    """The machine code of a plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "native")
        return HostExecutable(plan, poison=poison, order=order)


def native(function: Function, *arguments: Any) -> Any:
    """Runs a function as native code, in memory that nobody has written."""
    stage = traced(function, *arguments)
    executable = compiled(lower(stage.optimized, TARGET))
    return tree.unflatten(stage.out_structure, list(executable(tree.leaves(arguments))))


class NativeDevice:
    """Runs programs of a module as native code, twice, in memory that nobody has written."""

    inexact: Collection[str] = ()
    times = 2

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def run(self, name: str, *arguments: Any, order: Random | None = None) -> Any:
        """The results; with an `order`, of code with the nodes in a random one."""
        function, given = self._programs[name]
        stage = traced(function, *given)
        executable = compiled(lower(stage.optimized, TARGET), order)
        first, second = ([*executable(tree.leaves(arguments))] for _ in range(2))
        for one, other in zip(first, second, strict=True):
            assert one.tobytes() == other.tobytes(), "the second call differs"
        return tree.unflatten(stage.out_structure, second)
