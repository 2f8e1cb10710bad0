"""The op of events: on the host, where each call ends before it returns, it does nothing."""

from __future__ import annotations

from typing import Any

from tracegraph.ir.derivative import Constant
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.events import EventUse
from tracegraph.ir.op import Effect, Op, register
from tracegraph.ir.types import ArrayType


def _type_rule(token: ArrayType, *arrays: ArrayType, event: EventUse) -> ArrayType:
    if token != TOKEN:
        raise TypeError(f"the first operand must be a token, {TOKEN}, not {token}")
    return token


def _reference(token: Any, *arrays: Any, event: EventUse) -> Any:
    return token


use_event = register(
    Op(
        "use_event",
        "Records an event, or waits for it.",
        _type_rule,
        _reference,
        Effect(),
        lambda: (),
        derivative=Constant(),
    )
)
