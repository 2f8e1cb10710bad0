"""Print nests as instructions: each argument is evaluated and kept, then all are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluate import Evaluator
from lowering.host.instructions import Instruction
from lowering.plan.kernel import PrintedArray, PrintNest
from tracegraph.ir.effects import PrintFormat


def print_runs(nest: PrintNest, format_: PrintFormat) -> Iterator[Evaluator]:
    """The instructions of a print nest. The arguments have an iteration space each."""
    values: list[Array] = [np.empty(a.shape, a.value.dtype) for a in nest.arguments]
    for argument, value in zip(nest.arguments, values, strict=True):
        if prod(argument.shape):
            yield _kept(nest, argument, value)
    last = Evaluator((), nest.predicates)
    last.instructions.append(Instruction("effect", lambda: _print(format_, values), ()))
    yield last


def _kept(nest: PrintNest, argument: PrintedArray, into: Array) -> Evaluator:
    run = Evaluator(argument.shape, nest.predicates)
    register = run.value(argument.value)
    run.instructions.append(Instruction("effect", _copy_to(into), (register,)))
    return run


def _copy_to(target: Array) -> Callable[[Array], None]:
    def copy(value: Array) -> None:
        target[...] = value

    return copy


def _print(format_: PrintFormat, values: list[Array]) -> None:
    print(format_.render(tuple(values)))
