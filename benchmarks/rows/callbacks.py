"""What calls of the host cost: one at the top of a program, and one in each step of a loop.

The functions do nothing. A call without an answer is timed with the wait that all have been made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from benchmarks.harness.own import eager, jitted
from benchmarks.harness.row import GIGABYTES, MICROSECONDS, PER_ITERATION, Inputs, Results, Row
from tracegraph import ArrayType

STEPS = 1000
LARGE = 4 << 20


def _inputs_of(size: int) -> Callable[[Any], Inputs]:
    return lambda draw: [draw.uniform(draw.size(size), draw.dtype("float32", "float64"))]


def _nothing(x: Any) -> None:
    pass


def _same(x: Any) -> Any:
    return x


def _tell(x: Any) -> Any:
    tracegraph.debug.callback(_nothing, x)
    return x + 1


def _ask(x: Any) -> Any:
    return tracegraph.pure_callback(_same, ArrayType(x.dtype, x.shape), x) + 1


def _repeat(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tracegraph.fori_loop(0, STEPS, lambda i, x: step(x), x)


def _plain(x: Any) -> Any:
    return x + 1


def _jax_tell(x: Any) -> Any:
    import jax

    jax.debug.callback(_nothing, x, ordered=True)
    return x + 1


def _jax_ask(x: Any) -> Any:
    import jax

    return jax.pure_callback(_same, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1


def _jax(step: Callable[[Any], Any]) -> Callable[[Any], Callable[[], Any]]:
    def prepare(x: Any) -> Callable[[], Any]:
        import jax

        f = jax.jit(step)
        return lambda: f(x)

    return prepare


def _jax_repeat(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def repeated(x: Any) -> Any:
        import jax

        return jax.lax.fori_loop(0, STEPS, lambda i, x: step(x), x)

    return repeated


def _steps(inputs: Inputs, results: Results) -> float:
    return STEPS


def _bytes_sent(inputs: Inputs, results: Results) -> float:
    return float(np.asarray(inputs[0]).nbytes)


def _row(name: str, title: str, step: Any, theirs: Any, size: int = 16, **options: Any) -> Row:
    return Row(
        name=name,
        title=title,
        inputs=_inputs_of(size),
        contestants={"tracegraph": jitted(step), "numpy": eager(step), "jax": _jax(theirs)},
        limits=("launch",),
        **options,
    )


ROWS = (
    _row("callback_none", "x + 1, without a callback", _plain, _plain, unit=MICROSECONDS),
    _row("callback", "a callback at the top", _tell, _jax_tell),
    _row("callback_answer", "a callback with an answer at the top", _ask, _jax_ask),
    _row(
        "callback_loop",
        f"a callback in each of {STEPS} steps",
        _repeat(_tell),
        _jax_repeat(_jax_tell),
        unit=PER_ITERATION,
        work=_steps,
    ),
    _row(
        "callback_answer_loop",
        f"a callback with an answer in each of {STEPS} steps",
        _repeat(_ask),
        _jax_repeat(_jax_ask),
        unit=PER_ITERATION,
        work=_steps,
    ),
    _row(
        "callback_large",
        f"a callback of {LARGE >> 20} Mi elements",
        _tell,
        _jax_tell,
        LARGE,
        unit=GIGABYTES,
        work=_bytes_sent,
    ),
)
"""Run where they are named, one by one or as `callbacks`."""
