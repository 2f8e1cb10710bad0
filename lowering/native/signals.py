"""Signals of nests: conditions, failed checks and progress, from native code to the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lowering.native.nests.expressions import NestExpressions
from lowering.native.writer import Writer
from lowering.plan.nests.kernel import Publish, Require, SetCondition, Signal


class Signals:
    """Writes signals. `conditions` are the addresses of those of a plan; `call` calls the host.

    `call(function)` writes a call of a function of the host, which takes an index. A failed check
    ends the run.
    """

    def __init__(
        self,
        writer: Writer,
        conditions: Mapping[int, str],
        require: Callable[[int], None],
        publish: Callable[[int, str], None],
    ) -> None:
        self._writer = writer
        self._conditions = conditions
        self._require, self._publish = require, publish

    def write(self, run: NestExpressions, signals: Sequence[Signal]) -> None:
        """Write signals whose values are computed."""
        for signal in signals:
            value = run.value(signal.value)[0]
            match signal:
                case SetCondition(condition=number):
                    self.set_condition(number, as_i64(run, signal, value))
                case Require(failure=number):
                    failed = self._writer.assign(f"xor i1 {value}, true")
                    self._writer.if_(failed, partial(self._require, number))
                case Publish(monitor=number):
                    self._publish(number, as_i64(run, signal, value))

    def set_condition(self, number: int, value: str) -> None:
        """Store a condition, an `i64`."""
        self._writer.line(f"store i64 {value}, ptr {self._conditions[number]}")


def as_i64(run: NestExpressions, signal: Signal, value: str) -> str:
    """A bool or an integer in 64 bits."""
    dtype = signal.value.dtype
    if dtype.itemsize == 8:
        return value
    type_ = "i1" if dtype.kind == "b" else f"i{8 * dtype.itemsize}"
    return run.writer.assign(f"{'sext' if dtype.kind == 'i' else 'zext'} {type_} {value} to i64")
