"""Static arguments: axes, extents and other parameters that must be known while tracing.

They are those that are annotated as something else than `Any`: `axis: Axis`, `k: int`. An error
that a traced value for one of them leads to, wherever it is noticed, is replaced by one that names
the function and the parameter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

from tracegraph.errors import StaticArgumentError
from tracegraph.errors.tracebacks import hide_frames
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.tracer import Tracer

P = ParamSpec("P")
R = TypeVar("R")

Static = Any
"""The annotation of a static parameter that is not an axis, shape or number: nested tuples of
ints."""


def require_static(
    label: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Called with the arguments of a function that has failed.

    Raises:
        StaticArgumentError: a static one is, or holds, a traced value.
    """
    signature, static = _parameters(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:  # it has failed for this
        return
    for name in static:
        is_many = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
        values = given.get(name, ()) if is_many else (given.get(name),)
        for number, value in enumerate(values, 1):
            for tracer in tracers_in(value):
                raise StaticArgumentError(label, str(number) if is_many else name, tracer) from None


@lru_cache(1024)
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Signature, tuple[str, ...]]:
    """The signature of a function, and its static parameters."""
    signature = inspect.signature(function)
    annotations = {name: p.annotation for name, p in signature.parameters.items()}
    return signature, tuple(n for n, a in annotations.items() if a not in ("Any", Any))


def tracers_in(value: Any) -> Iterator[Tracer]:
    """The tracers in a value: itself, or in lists and tuples."""
    if isinstance(value, Tracer):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tracers_in(part)


def static_parameters(function: Callable[P, R]) -> Callable[P, R]:
    """Name the parameter, if a traced value for a static one makes a function fail."""
    label = f"numpy.{function.__name__}"

    @wraps(function)
    def naming(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if Selected in map(type, args):
                return FUNCTIONS["apply_to_selected"](function.__name__, function, args, kwargs)  # type: ignore[no-any-return]
            return function(*args, **kwargs)
        except Exception as error:
            require_static(label, function, args, kwargs)
            hide_frames(error)
            raise

    return naming
