"""Functions run as native code, whatever TRACEGRAPH_HOST says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from lowering.backends.host import TARGET
from lowering.host.choice import VARIABLE
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.plan import Plan
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
