"""vmap: arguments, axes and results that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracegraph.errors.wording import TypeLike, function_text, user_line
from tracegraph.user_source import Source

__all__ = ["BatchRuleError", "LaneCountError", "OutAxesError", "VmapAxesError", "VmapError"]


class VmapError(ValueError):
    """vmap cannot use what it was given, or what the function returned."""

    def __init__(self, problem: str, *details: str) -> None:
        super().__init__("\n  ".join((f"vmap: {problem}", *details)) + user_line())


class VmapAxesError(VmapError):
    """`in_axes` or `out_axes` does not fit the arguments or results."""


class LaneCountError(VmapError):
    """The mapped axes have no common extent: `rows` has each one's path, type, axis and extent."""

    def __init__(
        self,
        function: Callable[..., Any],
        rows: Sequence[tuple[str, TypeLike, int]],
        axis_size: int | None,
    ) -> None:
        name = function_text(function)
        if not rows:
            super().__init__(
                f"no argument of {name} has a mapped axis, so that the number of lanes is not "
                "known; give axis_size, or an axis in in_axes"
            )
            return
        wanted = "one extent" if axis_size is None else f"axis_size={axis_size} elements"
        listed = [
            f"{path}: {type_}, which has {type_.shape[axis]} along axis {axis}"
            for path, type_, axis in rows
        ]
        advice = "in_axes says which axis of an argument is mapped; None is for what lanes share"
        super().__init__(f"the mapped axes of {name} must have {wanted}", *listed, advice)


class OutAxesError(VmapError):
    """`out_axes` is None for a result that differs between lanes."""

    def __init__(self, function: Callable[..., Any], path: str, type_: TypeLike) -> None:
        super().__init__(
            f"out_axes is None for {path} of {function_text(function)}, {type_} in each lane, "
            "which depends on mapped arguments; give the axis at which its lanes are stacked"
        )


class BatchRuleError(TypeError):
    """An op has no batching rule."""

    def __init__(self, op: str, source: Source | None) -> None:
        where = "" if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(
            f"vmap: the op {op} has no batching rule; give its record one, Op(..., batch=rule), "
            f"or apply it outside of vmap{where}"
        )
