"""Loops whose carries reverse mode keeps at some steps alone: functions of `checkpoints=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.programs.gradients import W
from tracegraph import fori_loop, scan, while_loop

Program = Callable[[Any], Any]

LENGTH = 100


def of_scan(checkpoints: int | None) -> Program:
    def function(x: Any) -> Any:
        def step(c: Any, t: Any) -> Any:
            state = np.tanh(W @ np.exp(np.sin(c)) + t * x)
            return state, state.sum()

        last, ys = scan(step, x, np.linspace(0, 1, LENGTH), checkpoints=checkpoints)
        return last.sum() + (ys * np.arange(LENGTH)).sum()

    return function


def of_fori_loop(checkpoints: int | None) -> Program:
    def function(x: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            return np.tanh(W @ np.exp(np.sin(c)) + i * x)

        return fori_loop(3, 3 + LENGTH, step, x, checkpoints=checkpoints).sum()

    return function


def of_while_loop(checkpoints: int | None, steps: int = 37) -> Program:
    def function(x: Any) -> Any:
        def step(c: Any) -> Any:
            return np.tanh(W @ np.exp(np.sin(c[0])) + c[1] * x), c[1] + 1

        last = while_loop(
            lambda c: c[1] < steps, step, (x, 0), max_steps=LENGTH, checkpoints=checkpoints
        )
        return last[0].sum()

    return function


LOOPS = [of_scan, of_fori_loop, of_while_loop]
