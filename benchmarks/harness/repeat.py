"""A loop in Python, for libraries that have none of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def repeated(step: Callable[[Any], Any], steps: int) -> Callable[[Any], Any]:
    """A function that applies `step` a number of times."""

    def loop(x: Any) -> Any:
        for _ in range(steps):
            x = step(x)
        return x

    return loop
