"""`tracegraph.show`: what cannot be drawn, and options that do not fit."""

from __future__ import annotations

__all__ = ["NotDrawableError", "ShowOptionError"]


class NotDrawableError(TypeError):
    """`show` was given something that it does not draw."""

    def __init__(self, value: object) -> None:
        super().__init__(
            "show() draws what tracing and lowering return: a Program, a Traced, Lowered or "
            f"Compiled stage, a Plan or a node of one; got a {type(value).__qualname__}; to draw a "
            "function, pass jitted.trace(*args) for its program, or jitted.lower(*args) for its "
            "graph"
        )


class ShowOptionError(ValueError):
    """An option of `show` has a value that it cannot have."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"show(): {problem}")
