"""The emitter of rules: each op as a method that records it in one trace."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from tracegraph.ir.op import Op, all_ops, get
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.trace import Trace, bind
from tracegraph.tracing.tracer import Tracer


class Emit:
    """Records ops by name: `Emit(trace).sin(x)`.

    It records even if no operand is traced: outside of a trace, an op would run at once, and its
    result be a constant of the program.
    """

    __slots__ = ("trace",)

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return MethodType(_method(get(name)), self)  # an op that a user has registered

    def zeros(self, type_: ArrayType) -> Any:
        """Zeros of a type."""
        return self.broadcast_to(type_.dtype.type(0), shape=type_.shape)


def _method(op: Op) -> Callable[..., Any]:
    if op.is_view:

        def record_plain(self: Emit, *args: Any, **attrs: Any) -> Any:
            return plain(self.trace, bind(self.trace, op, args, attrs))

        return record_plain

    def record(self: Emit, *args: Any, regions: tuple[Any, ...] = (), **attrs: Any) -> Any:
        if regions:
            return self.trace.record(op, [self.trace.read(x) for x in args], attrs, regions)
        return bind(self.trace, op, args, attrs)

    return record


# The package's own ops are found as methods, without a call of `__getattr__`.
for _op in all_ops():
    setattr(Emit, _op.name, _method(_op))


def plain(trace: Trace, x: Any) -> Tracer:
    """A traced value, or a constant, as one of this trace, which no write to another changes."""
    return Tracer(trace, trace.read(x))
