"""Signals of nests: conditions, failed checks and progress, from native code to the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lowering.native.nests.expressions import NestExpressions
from lowering.native.types import register_parts
from lowering.native.writer import Writer
from lowering.plan.nests.kernel import Publish, Require, SetCondition, Signal


class Signals:
    """Writes signals. `conditions` are the addresses of those of a plan.

    `require(failure)` writes the call of the host for a failed check, which ends the run;
    `publish(monitor, count)` writes what tells the host the progress of a loop.
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
                    self.set_condition(number, self._in_64_bits(signal, value))
                case Require(failure=number):
                    failed = self._writer.assign(f"xor i1 {value}, true")
                    self._writer.if_(failed, partial(self._require, number))
                case Publish(monitor=number):
                    self._publish(number, self._in_64_bits(signal, value))

    def set_condition(self, number: int, value: str) -> None:
        """Store a condition, an `i64`."""
        self._writer.line(f"store i64 {value}, ptr {self._conditions[number]}")

    def _in_64_bits(self, signal: Signal, value: str) -> str:
        (type_,) = register_parts(signal.value.dtype)
        return self._writer.widened(type_, signal.value.dtype.kind == "i", value)
