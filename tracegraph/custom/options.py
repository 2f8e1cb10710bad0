"""Options that several declarations take: `batching`, and `derivative`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from tracegraph import errors
from tracegraph.control.regions import require_callable

Batching = Callable[..., Any] | Literal["sequential"]
Derivative = Callable[..., Any] | Literal["reference"]


def checked_batching(given: Any, error: Callable[[str], Exception]) -> Batching | None:
    """What a user gave, if it is None, ``"sequential"`` or a function.

    Raises:
        Exception: it is none of these: what `error` makes of the problem.
    """
    if given is None or _is(given, "sequential") or callable(given):
        found: Batching | None = given
        return found
    got = errors.value_text(given)
    raise error(f'batching must be a function or "sequential", not {got}')


def checked_derivative(
    given: Any, parameters: Sequence[str], where: str, error: Callable[[str], Exception]
) -> Derivative | None:
    """What a user gave, if it is None, ``"reference"`` or a function of these parameters.

    Raises:
        Exception: it is none of these: what `error` makes of the problem.
        ParametersError: the function takes others.
    """
    derivative: Derivative | None = given
    if given is None or is_reference(given):
        return derivative
    if not callable(given):
        listed, got = ", ".join(parameters), errors.value_text(given)
        raise error(f'derivative must be a function ({listed}) or "reference", not {got}')
    require_callable(where, {"derivative": given}, parameters)
    return derivative


def is_reference(derivative: Any) -> bool:
    """Whether an option says that the NumPy reference is differentiated."""
    return _is(derivative, "reference")


def _is(given: Any, word: str) -> bool:
    """Whether an option is a word. Arrays, which compare by elements, are not."""
    return isinstance(given, str) and given == word
