"""Families: functions of NumPy's with one signature and one text, each told by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

from tracegraph.numpy.dispatching.dispatch import numpy_function
from tracegraph.numpy.dispatching.statics import static_parameters

P = ParamSpec("P")
R = TypeVar("R")

_NONE: Mapping[str, Any] = MappingProxyType({})


def numpy_family(rule: Callable[Concatenate[str, P], R]) -> Callable[..., Callable[P, R]]:
    """What makes functions as `numpy_function` does, from one rule that gets the name of each.

    What it returns takes the name of a function, and as keywords the words that the docstring of
    the rule leaves open in braces. `defaults` has defaults of parameters that are others.

    >>> @numpy_family
    ... def _extreme(name: str, a: Any, axis: int | None = None) -> Any:
    ...     \"\"\"The {which} element.\"\"\"
    >>> amin = _extreme("amin", which="least")
    >>> amin([[3, 1], [2, 4]], 1), amin.__doc__
    (array([1, 2]), 'The least element.')
    >>> print(amin.__name__, inspect.signature(amin))
    amin (a: 'Any', axis: 'int | None' = None) -> 'Any'
    """
    return _family(rule, numpy_function)


def static_family(rule: Callable[Concatenate[str, P], R]) -> Callable[..., Callable[P, R]]:
    """The same, as `static_parameters` does."""
    return _family(rule, static_parameters)


def _family(
    rule: Callable[Concatenate[str, P], R], lift: Callable[[Callable[P, R]], Callable[P, R]]
) -> Callable[..., Callable[P, R]]:
    _, *parameters = inspect.signature(rule).parameters.values()
    text = rule.__doc__ or ""

    def member(name: str, *, defaults: Mapping[str, Any] = _NONE, **words: str) -> Callable[P, R]:
        replaced = [(n, p.name) for n, p in enumerate(parameters) if p.name in defaults]

        def function(*args: P.args, **kwargs: P.kwargs) -> R:
            for place, parameter in replaced:
                if len(args) <= place:
                    kwargs.setdefault(parameter, defaults[parameter])
            return rule(name, *args, **kwargs)

        own = [p.replace(default=defaults.get(p.name, p.default)) for p in parameters]
        function.__name__ = function.__qualname__ = name
        function.__module__ = rule.__module__
        function.__doc__ = text.format(name=name, **words)
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            own, return_annotation="Any"
        )
        return lift(function)

    return member
