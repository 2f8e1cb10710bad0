"""Print and call nests as instructions: the arguments are evaluated and copied, then all are
printed, or passed to a function whose results are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from math import prod

import numpy as np

from lowering.host.arena import Array
from lowering.host.interpreter.evaluate import Evaluator
from lowering.host.interpreter.instructions import Instruction
from lowering.host.interpreter.strided_views import whole
from lowering.plan.nests.kernel import CallNest, PrintedArray, PrintNest
from lowering.plan.plan import Plan
from tracegraph.ir.callbacks import HostFunction
from tracegraph.ir.effects import PrintFormat
from tracegraph.ops.callbacks import answer


def print_evaluators(nest: PrintNest, plan: Plan) -> Iterator[Evaluator]:
    """The instructions of a print or call nest. Each argument has its own iteration space."""
    values: list[Array] = [np.empty(a.shape, a.value.dtype) for a in nest.arguments]
    for argument, value in zip(nest.arguments, values, strict=True):
        if prod(argument.shape):
            yield _copied(argument, value)
    last = Evaluator(())
    if isinstance(nest, CallNest):
        last.instructions += _called(nest, plan.callbacks[nest.site], values)
    else:
        format_ = plan.prints[nest.site]
        last.instructions.append(Instruction("effect", lambda: _print(format_, values), ()))
    yield last


def _called(nest: CallNest, callback: HostFunction, values: list[Array]) -> Iterator[Instruction]:
    """The call, and the stores of what it answers."""
    answers: list[Array] = []

    def call() -> None:
        # the plan's own context hides NumPy's warnings
        answers[:] = Context().run(answer, callback, values)

    def take(position: int) -> Callable[[Array], None]:
        def store(target: Array) -> None:
            target[...] = answers[position].reshape(-1)

        return store

    yield Instruction("effect", call, ())
    for position, buffer in enumerate(nest.results):
        yield Instruction("write", take(position), (), whole(buffer))


def _copied(argument: PrintedArray, into: Array) -> Evaluator:
    run = Evaluator(argument.shape)
    value = run.value(argument.value)
    run.instructions.append(Instruction("effect", _copy_to(into), (value,)))
    return run


def _copy_to(target: Array) -> Callable[[Array], None]:
    def copy(value: Array) -> None:
        target[...] = value

    return copy


def _print(format_: PrintFormat, values: list[Array]) -> None:
    print(format_.render(tuple(values)))
