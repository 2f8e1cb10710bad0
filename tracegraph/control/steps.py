"""Steps of a loop: counting, limiting and showing them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Literal

from tracegraph import errors, progress
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.effects import Failure, require_allowed
from tracegraph.ir.op import get
from tracegraph.progress import Monitor
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.user_source import user_source

Function = Callable[..., Any]
OnMaxSteps = Literal["raise", "stop"]
Progress = bool | str | Callable[[int, int | None], object]


@dataclass(frozen=True, slots=True)
class Steps:
    """What a loop does with its number of steps.

    It stops after `limit` steps. If its own condition still holds then, that is the `failure`, if
    there is one. `monitor` shows the number.
    """

    limit: int | None = None
    failure: Failure | None = None
    monitor: Monitor | None = None

    @property
    def counted(self) -> bool:
        """Whether the number of steps is needed at all."""
        return self.limit is not None or self.monitor is not None

    def watch(self) -> AbstractContextManager[Callable[[int], None]]:
        """While the loop runs as plain Python: the function that shows the number of steps."""
        return progress.watching(self.monitor)

    def report(self, step: Any) -> None:
        """Record, in the loop's body, the effect that shows the number of steps done."""
        trace = current_trace()
        if self.monitor is not None and trace is not None:
            trace.perform(get("report_step"), [step], {"monitor": self.monitor})


def steps_of(construct: str, function: Function, progress_: Any, total: int | None = None) -> Steps:
    """The steps of a loop that ends by itself, from its argument `progress`.

    Raises:
        ProgressError: `progress_` is neither a bool, nor a string, nor a function.
        EffectInConditionError: the loop shows its progress, inside the condition of another loop.
    """
    monitor = progress.monitor_of(construct, progress_, function, total)
    if monitor is not None:
        require_allowed(f"{construct}(..., progress=...)")
    return Steps(monitor=monitor)


def bounded_steps(
    cond_fun: Function, body_fun: Function, max_steps: Any, on_max_steps: str, progress_: Any
) -> Steps:
    """The steps of a while_loop, from its arguments.

    Raises:
        StaticLengthError: `max_steps` is a traced value.
        StepLimitOptionError: `max_steps` is not an int of at least 0, or `on_max_steps` is unknown.
        ProgressError, EffectInConditionError: as in `steps_of`.
    """
    monitor = steps_of("while_loop", body_fun, progress_).monitor
    if on_max_steps not in ("raise", "stop"):
        raise errors.StepLimitOptionError("on_max_steps", "'raise' or 'stop'", on_max_steps)
    if max_steps is None:
        return Steps(monitor=monitor)
    limit = _limit(max_steps)
    if on_max_steps == "stop":
        return Steps(limit, None, monitor)
    require_allowed("while_loop(..., max_steps=...), which raises an error at the limit,")
    message = errors.step_limit_text(cond_fun, body_fun, limit)
    return Steps(limit, Failure("StepLimitError", message, user_source()), monitor)


def counted_steps(body_fun: Function, max_steps: Any, progress_: Any, total: int | None) -> Steps:
    """The steps of a fori_loop, from its arguments; `total` is their number if it is known.

    Raises:
        StaticLengthError, StepLimitOptionError, ProgressError, EffectInConditionError: as in
            `bounded_steps`.
    """
    steps = steps_of("fori_loop", body_fun, progress_, total)
    if max_steps is None:
        return steps
    limit = _limit(max_steps, "fori_loop")
    require_allowed("fori_loop(..., max_steps=...), which raises an error beyond it,")
    message = errors.iteration_limit_text(body_fun, limit)
    return Steps(limit, Failure("StepLimitError", message, user_source()), steps.monitor)


def _limit(max_steps: Any, construct: str = "while_loop") -> int:
    if isinstance(max_steps, Tracer):
        raise errors.StaticLengthError(construct, "max_steps", max_steps)
    needed = "None or an int of at least 0"
    try:
        limit = operator.index(max_steps)
    except TypeError:
        raise errors.StepLimitOptionError("max_steps", needed, max_steps, construct) from None
    if isinstance(max_steps, bool) or limit < 0:
        raise errors.StepLimitOptionError("max_steps", needed, max_steps, construct)
    return min(limit, 2**63 - 1)  # steps are counted in 64 bits
