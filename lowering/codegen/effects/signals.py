"""The text of signals: conditions for the graph, step counts and failures for the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from lowering.codegen.expressions import cast, compute, stored, value, write_store
from lowering.codegen.kernel_parameters import (
    ConditionHandle,
    FailureWord,
    Parameter,
    StepCount,
    StopFlagAddress,
)
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import Publish, Require, SetCondition, Signal, Store
from lowering.plan.nests.lazy_values import is_expensive
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Const, const, select
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import subexpressions

STOPPED = "stopped"

STOP_WATCH = "stop_watch"
"""The stop flag in a persistent kernel, whose steps are too short for a load each."""


def word(condition: int) -> str:
    """The pointer to a condition whose node is a phase of the kernel."""
    return f"word{condition}"


def signal_parameters(
    signals: Iterable[Signal], loops: Set[int], words: Set[int] = frozenset()
) -> Iterator[Parameter]:
    """The parameters of signals. `loops` are the conditions of while nodes; those in `words` have
    their nodes in the kernel.
    """
    for signal in signals:
        match signal:
            case SetCondition(condition=condition):
                if condition not in words:
                    yield ConditionHandle(condition)
                if condition in loops:
                    yield StopFlagAddress()
            case Publish(monitor=monitor):
                yield StepCount(monitor)
            case Require():
                yield FailureWord()


def write_stop_check(
    writer: SourceWriter, signals: Iterable[Signal], stores: Iterable[Store]
) -> None:
    """Load the stop flag if a signal needs it: first, to overlap the load with other work.

    Inside of a kernel, that is the flag that devices have agreed about. The nest makes `stores`.
    """
    setting = [s for s in signals if isinstance(s, SetCondition)]
    conditions = [signal.condition for signal in setting]
    if any(c in writer.loops and c not in writer.words for c in conditions):
        writer.line(f"const tg_u32 {STOPPED} = *{writer.names[StopFlagAddress()]};")
    agreed = [s.value for s in setting if s.agreed and s.condition in writer.words]
    written = {store.buffer for store in stores}
    loads = [e for e in subexpressions(agreed) if isinstance(e, Load) and e.buffer not in written]
    fixed = [load for load in loads if all(isinstance(index, Const) for index in load.indices)]
    compute(writer, [load for load in fixed if load.guard is None])


def write_results(writer: SourceWriter, stores: Iterable[Store], signals: Iterable[Signal]) -> None:
    """Write flat stores and signals. Everything is computed before the first of them."""
    stores, signals = tuple(map(_computed_where_stored, stores)), tuple(signals)
    compute(writer, [*stored(stores), *(signal.value for signal in signals)])
    for store in stores:
        write_store(writer, store, value(writer, store.value))
    for signal in signals:
        _write_signal(writer, signal)


def _computed_where_stored(store: Store) -> Store:
    """A store whose value, if it is expensive, is computed only where the guard holds."""
    if store.guard is None or not any(map(is_expensive, subexpressions((store.value,)))):
        return store
    nothing = const(0, store.value.dtype)
    return replace(store, value=select(store.guard, store.value, nothing))


def _write_signal(writer: SourceWriter, signal: Signal) -> None:
    text = value(writer, signal.value)
    match signal:
        case SetCondition(condition=condition):
            number = cast("tg_u32", text)
            if condition in writer.words:
                if condition in writer.loops:
                    flag = writer.names[StopFlagAddress()]
                    stops = f"{STOP_WATCH}.look({flag}, tg_clock())"
                    stops = f"{stops} > 1u" if signal.agreed else stops
                    number = f"{stops} ? 0u : {number}"
                writer.line(f"*{word(condition)} = {number};")
                return
            if condition in writer.loops:
                stops = f"{STOPPED} > 1u" if signal.agreed else STOPPED
                number = f"{stops} ? 0u : {number}"
            handle = writer.names[ConditionHandle(condition)]
            writer.line(f"cudaGraphSetConditional({handle}, {number});")
        case Publish(monitor=monitor):
            writer.line(f"*{writer.names[StepCount(monitor)]} = {cast('tg_i64', text)};")
        case Require(failure=failure):
            failures = writer.names[FailureWord()]
            writer.line(f"if (!({text}) && *{failures} == 0) *{failures} = {failure + 1};")
