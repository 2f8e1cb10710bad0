"""`debug.print`: its template and its arguments."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.errors.wording import user_line

__all__ = ["PrintArgumentError", "PrintFormatError"]


class PrintArgumentError(TypeError):
    """An argument of `debug.print` is not an array or a number."""

    def __init__(self, argument: str, template: str, reason: Exception) -> None:
        super().__init__(
            f"debug.print({template!r}, ...): {argument}: {reason}; pass arrays and numbers, one "
            "by one, and put any text into the template"
            f"{user_line()}"
        )


class PrintFormatError(ValueError):
    """The template of `debug.print` cannot format its arguments."""

    def __init__(self, template: str, problem: str, arguments: Sequence[str]) -> None:
        super().__init__(
            f"debug.print({template!r}, ...): {problem}; the arguments are "
            f"{', '.join(arguments) or 'none'}, and the template, in the language of str.format, "
            "must use each: {} or {0} by position, {name} by name; formats of numbers, such as "
            "{:.3f}, fit values without axes only, and a literal brace is doubled"
            f"{user_line()}"
        )
