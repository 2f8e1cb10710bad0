"""Calls of jitted functions: arguments, results, and the arrays that they become."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.errors.wording import user_line
from tracegraph.user_source import Source

__all__ = [
    "ArgumentTypesError", "DonatedArrayError", "EndlessTreeError", "ExportedTypesError",
    "ImmutableArrayError", "IntegerRangeError", "RawMemoryError", "UnhashableStaticError",
    "UnsupportedArgumentError", "UnsupportedResultError",
]  # fmt: skip


class UnhashableStaticError(TypeError):
    """A static argument or field cannot be part of a cache key."""

    def __init__(self, what: str, value: object) -> None:
        super().__init__(
            f"{what} is of type {type(value).__qualname__}, which is not hashable; a static value "
            "must be hashable and comparable, since programs are cached by it: pass a tuple "
            "instead of a list, a frozen dataclass instead of a dict, or do not make it static"
        )


class UnsupportedArgumentError(TypeError):
    """An argument holds something that is neither an array nor a number."""

    def __init__(self, function: str, path: str, got: str) -> None:
        super().__init__(
            f"argument {path} of {function} {got}; accepted are arrays (tracegraph, NumPy, and any "
            "with DLPack or __cuda_array_interface__), Python and NumPy numbers, None, and tuples, "
            "lists, dicts and registered dataclasses of them. Name any other value in "
            "static_argnums or static_argnames, or register its class with "
            "tracegraph.register_dataclass"
        )


class EndlessTreeError(ValueError, RecursionError):
    """A list, dict or tuple that holds itself, or is nested thousands deep, where a pytree is asked
    for.
    """

    def __init__(self, path: str, holds_itself: bool, what: str = "the pytree") -> None:
        self.path, self.holds_itself = path, holds_itself
        where = f"{what}{path}" if what != "the pytree" else f"{what} at {path}" if path else what
        problem = "holds itself" if holds_itself else "is nested too deeply"
        super().__init__(f"{where} {problem}; pass a list, dict or tuple that ends")


class IntegerRangeError(OverflowError):
    """A Python int does not fit the dtype that it meets, or 64 bits where there is none.

    `what` names it where its value alone does not. `source` is the line where it meets the dtype,
    by default the user's line.
    """

    def __init__(
        self, value: int, dtype: object = None, what: str = "", source: Source | None = None
    ) -> None:
        shown = str(value) if value.bit_length() <= 128 else f"of {value.bit_length()} bits"
        given = f"{what} is the Python int {shown}, which" if what else f"the Python int {shown}"
        if dtype is None:
            problem = "does not fit 64 bits; use a float"
        else:
            problem = (
                f"does not fit {dtype}, the dtype that it meets; convert that to a wider dtype "
                "with .astype, or use a NumPy number instead of the int"
            )
        where = user_line() if source is None else f"\n  at {source}, in {source.function}"
        super().__init__(f"{given} {problem}{where}")


class UnsupportedResultError(TypeError):
    """A traced function returned something that is neither an array nor a number."""

    def __init__(self, function: str, path: str, value: object) -> None:
        super().__init__(
            f"{function} returned a {type(value).__module__}.{type(value).__qualname__} as {path}; "
            "a traced function returns arrays, numbers, None, and tuples, lists, dicts and "
            "registered dataclasses of them"
        )


class ArgumentTypesError(TypeError):
    """A compiled function was called with other types than those it was compiled for."""

    def __init__(self, function: str, differences: str) -> None:
        super().__init__(
            f"{function} was compiled for other arguments: {differences}; call the jitted "
            "function, which compiles for new types, or lower it for these"
        )


class ExportedTypesError(ArgumentTypesError):
    """A saved function was called with types for which it has no program."""

    def __init__(self, function: str, got: str, there: Sequence[str]) -> None:
        listed = "".join(f"\n  {each}" for each in there)
        TypeError.__init__(
            self,
            f"{function} was exported for other arguments than ({got}); convert them, or export it "
            f"for these as well. There are programs for:{listed}",
        )


class RawMemoryError(ValueError):
    """An address given to `tracegraph.owned` cannot be that of such an array."""


class DonatedArrayError(RuntimeError):
    """An array was used after it had been donated, or donated and passed as another argument."""


class ImmutableArrayError(TypeError, ValueError):
    """An Array that is read-only was written to; NumPy raises ValueError there, too."""

    def __init__(self, operation: str = "`x[index] = value`", instead: str = "") -> None:
        advice = instead or "write `x = x.at[index].set(value)`"
        super().__init__(
            f"this tracegraph.Array is immutable: {operation} is not possible; {advice}, or write "
            "to a copy, x.copy() or numpy.array(x). Results of operations on Arrays may be written "
            "to; arguments and results of jitted functions, what asarray makes, memory that other "
            "libraries share, read-only views, and Arrays that a traced function captures may not"
        )
