"""Function transforms: what `grad`, `jvp` and their relatives cannot differentiate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tracegraph.errors.wording import TypeLike, function_text, user_line
from tracegraph.user_source import Source

__all__ = [
    "ArgumentNumberError", "CustomRuleError", "DerivativeError", "DifferentiatedTypeError",
    "NonlinearError", "ReverseLoopError", "ScalarResultError", "TangentMismatchError",
    "TransformError",
]  # fmt: skip


def _line(source: Source | None) -> str:
    """The line of an equation; where there is none, the user's line now."""
    return user_line() if source is None else f"\n  at {source}, in {source.function}"


class TransformError(TypeError):
    """A transform of a function cannot use what it was given, or what the function returned."""

    def __init__(self, transform: str, problem: str, *details: str) -> None:
        super().__init__("\n  ".join((f"{transform}: {problem}", *details)) + user_line())


class DifferentiatedTypeError(TransformError):
    """An argument or a result has a dtype that the transform cannot differentiate."""


class ScalarResultError(TransformError):
    """The function that `grad` differentiates returned anything but a scalar."""

    def __init__(
        self, transform: str, function: Callable[..., object], got: str, advice: str
    ) -> None:
        super().__init__(
            transform, f"{function_text(function)} must return a scalar, got {got}; {advice}"
        )


class ArgumentNumberError(TransformError):
    """`argnums` names no argument of the call."""


class TangentMismatchError(TransformError):
    """A tangent or cotangent has another type than the value that it belongs to."""

    def __init__(
        self,
        transform: str,
        what: str,
        of: str,
        rows: Sequence[tuple[str, TypeLike, object]],
    ) -> None:
        lines = [f"{path} is {type_}, got {given}" for path, type_, given in rows]
        super().__init__(transform, f"{what} must have the shapes and dtypes of {of}", *lines)


class DerivativeError(TypeError):
    """An op has no derivative, or not with the operands that it has here."""

    def __init__(self, op: str, problem: str, source: Source | None) -> None:
        super().__init__(f"{op} cannot be differentiated here: {problem}{_line(source)}")


class NonlinearError(TypeError):
    """A function that is to be transposed is not linear, for the op at a line of its source."""

    def __init__(
        self,
        op: str,
        source: Source | None,
        transform: str = "linear_transpose",
        what: str = "the arguments",
    ) -> None:
        self.op, self.source = op, source
        advice = "transpose the derivative instead, by vjp"
        if transform != "linear_transpose":
            advice = "it must be linear"
        super().__init__(
            f"{transform}: {op} is not linear in what depends on {what}; {advice}{_line(source)}"
        )


class ReverseLoopError(TypeError):
    """A loop of unknown length is to be differentiated backwards.

    `kept` is what each step would keep, in bytes.
    """

    def __init__(
        self, construct: str, carry: Sequence[TypeLike], kept: int, source: Source | None
    ) -> None:
        carried = ", ".join(map(str, carry))
        place = "" if source is None else f"at {source}, in {source.function}, which carries "
        kept_text = _bytes_text(1000 * kept)
        bound = f"max_steps=…, e.g. max_steps=1000 keeps {kept_text}"
        super().__init__(
            f"cannot differentiate backwards through this {construct}: how many steps to keep is "
            f"not known\n  {place}{carried}\n"
            f"bound it with {bound}; or differentiate "
            "forwards (jvp, jacfwd, linearize);\nor, if it ends at a root or fixed point, wrap it "
            "in custom_root; or stop_gradient its result"
        )


def _bytes_text(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


class CustomRuleError(TransformError):
    """A rule of `custom_jvp` or `custom_vjp` is missing, or does not fit its function."""
