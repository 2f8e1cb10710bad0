"""Functions run as native code, whatever TRACEGRAPH_HOST says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any

import numpy as np
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
    """Runs programs of a module as native code in memory that nobody has written: as code that is
    made quickly, and once more as full code. Their bits are the same, but for those of NaNs.
    """

    inexact: Collection[str] = ()
    times = 2

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    def run(self, name: str, *arguments: Any, order: Random | None = None) -> Any:
        """The results; with an `order`, of code with the nodes in a random one."""
        function, given = self._programs[name]
        stage = traced(function, *given)
        executable = compiled(lower(stage.optimized, TARGET), order)
        quick = [*executable(tree.leaves(arguments))]
        executable.upload()
        full = [*executable(tree.leaves(arguments))]
        for one, other in zip(quick, full, strict=True):
            assert _bits(one) == _bits(other), "full code differs from quick code"
        return tree.unflatten(stage.out_structure, full)


def _bits(array: np.ndarray[Any, Any]) -> bytes:
    """The bytes of an array. Optimising may change the sign of a NaN."""
    if array.dtype.kind in "biu":
        return array.tobytes()
    if array.dtype.kind == "c":
        return _bits(array.real) + _bits(array.imag)
    return np.where(array == array, array, np.nan).tobytes()
