"""Print nests as instructions: the arguments are evaluated and copied, then all are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluate import Evaluator
from lowering.host.instructions import Instruction
from lowering.host.nests import MakeEvaluator
from lowering.plan.kernel import PrintedArray, PrintNest
from tracegraph.ir.effects import PrintFormat


def print_evaluators(
    nest: PrintNest, format_: PrintFormat, evaluator: MakeEvaluator
) -> Iterator[Evaluator]:
    """The instructions of a print nest. Each argument has its own iteration space."""
    values: list[Array] = [np.empty(a.shape, a.value.dtype) for a in nest.arguments]
    for argument, value in zip(nest.arguments, values, strict=True):
        if prod(argument.shape):
            yield _copied(argument, value, evaluator)
    last = evaluator((), ())
    last.instructions.append(Instruction("effect", lambda: _print(format_, values), ()))
    yield last


def _copied(argument: PrintedArray, into: Array, evaluator: MakeEvaluator) -> Evaluator:
    run = evaluator(argument.shape, ())
    value = run.value(argument.value)
    run.instructions.append(Instruction("effect", _copy_to(into), (value,)))
    return run


def _copy_to(target: Array) -> Callable[[Array], None]:
    def copy(value: Array) -> None:
        target[...] = value

    return copy


def _print(format_: PrintFormat, values: list[Array]) -> None:
    print(format_.render(tuple(values)))
