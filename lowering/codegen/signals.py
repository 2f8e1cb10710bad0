"""The text of signals: what one thread tells the graph, or the host by mapped memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from lowering.codegen.expressions import cast, compute, stored, value, write_store
from lowering.codegen.parameters import (
    ConditionHandle,
    FailureWord,
    Parameter,
    StepCount,
    StopFlag,
)
from lowering.codegen.source_writer import Body
from lowering.plan.kernel import Publish, Require, SetCondition, Signal, Store

STOPPED = "stopped"


def signal_parameters(signals: Iterable[Signal], loops: Set[int]) -> Iterator[Parameter]:
    """What signals need. `loops` are the conditions of while nodes: only they can be stopped."""
    for signal in signals:
        match signal:
            case SetCondition(condition=condition):
                yield ConditionHandle(condition)
                if condition in loops:
                    yield StopFlag()
            case Publish(monitor=monitor):
                yield StepCount(monitor)
            case Require():
                yield FailureWord()


def write_stop_check(body: Body, signals: Iterable[Signal]) -> None:
    """Load the stop flag if a signal needs it: first of all, so that the load costs no time."""
    if any(isinstance(s, SetCondition) and s.condition in body.loops for s in signals):
        body.line(f"const tg_u32 {STOPPED} = *{body.names[StopFlag()]};")


def write_results(body: Body, stores: Iterable[Store], signals: Iterable[Signal]) -> None:
    """Write flat stores and signals: everything is computed before the first of them."""
    stores, signals = tuple(stores), tuple(signals)
    compute(body, [*stored(stores), *(signal.value for signal in signals)])
    for store in stores:
        write_store(body, store, value(body, store.value))
    for signal in signals:
        _write_signal(body, signal)


def _write_signal(body: Body, signal: Signal) -> None:
    text = value(body, signal.value)
    match signal:
        case SetCondition(condition=condition):
            number = cast("tg_u32", text)
            if condition in body.loops:
                number = f"{STOPPED} ? 0u : {number}"
            handle = body.names[ConditionHandle(condition)]
            body.line(f"cudaGraphSetConditional({handle}, {number});")
        case Publish(monitor=monitor):
            body.line(f"*{body.names[StepCount(monitor)]} = {cast('tg_i64', text)};")
        case Require(failure=failure):
            word = body.names[FailureWord()]
            body.line(f"if (!({text}) && *{word} == 0) *{word} = {failure + 1};")
