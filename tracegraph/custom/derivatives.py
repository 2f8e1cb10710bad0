"""The option `derivative` of what users declare: a rule for tangents, or that of the reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from tracegraph import errors
from tracegraph.control.regions import require_callable

Derivative = Callable[..., Any] | Literal["reference"]


def checked_derivative(
    given: Any, parameters: Sequence[str], where: str, error: Callable[[str], Exception]
) -> Derivative | None:
    """What a user gave, if it is None, ``"reference"`` or a function of these parameters.

    Raises:
        Exception: it is none of these: what `error` makes of the problem.
        ParametersError: the function takes others.
    """
    if given is None or given == "reference":
        found: Derivative | None = given
        return found
    listed = ", ".join(parameters)
    if not callable(given):
        got = errors.value_text(given)
        raise error(f'derivative must be a function ({listed}) or "reference", not {got}')
    require_callable(where, {"derivative": given}, parameters)
    rule: Derivative = given
    return rule
