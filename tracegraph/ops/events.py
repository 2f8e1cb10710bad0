"""Events, and the ends of timed sections. By themselves, on the host, they do nothing."""

from __future__ import annotations

from typing import Any

from tracegraph.ir.derivative import Constant
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.events import EventUse, TimeMark
from tracegraph.ir.op import Effect, Op, register
from tracegraph.ir.types import ArrayType


def _type_rule(token: ArrayType, *arrays: ArrayType, event: EventUse | TimeMark) -> ArrayType:
    if token != TOKEN:
        raise TypeError(f"the first operand must be a token, {TOKEN}, not {token}")
    return token


def _reference(token: Any, *arrays: Any, event: EventUse | TimeMark) -> Any:
    return token


def _effect(name: str, doc: str) -> Op:
    form, derivative = Effect(), Constant()
    return register(Op(name, doc, _type_rule, _reference, form, lambda: (), derivative=derivative))


use_event = _effect("use_event", "Records an event, or waits for it.")

mark_time = _effect("mark_time", "Marks an end of a section whose time is measured.")
