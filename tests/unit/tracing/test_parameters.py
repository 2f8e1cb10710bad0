"""Parameters of functions: what code tells, and what only a signature does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tracegraph.tracing.parameters import Parameters, parameters_of, takes


class Bound:
    def method(self, x: Any) -> Any:
        return x

    def __call__(self, x: Any, y: Any) -> Any:
        return x, y


def plain(x: Any, y: Any = 0) -> Any:
    return x, y


@functools.wraps(plain)
def wrapper(*args: Any) -> Any:
    return plain(*args)


FUNCTIONS: list[Callable[..., Any]] = [
    plain,
    wrapper,
    lambda: 0,
    lambda x, /, y: (x, y),
    lambda x, *, y: (x, y),
    lambda x, *, y=0: (x, y),
    lambda *args: args,
    lambda x, **options: (x, options),
    lambda x, *rest, k, **options: [local := x, local],
    "".join,
    functools.partial(plain, 1),
    Bound().method,
    Bound(),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_parameters_are_what_python_says_they_are(function: Callable[..., Any]) -> None:
    found = parameters_of(function)
    wanted = inspect.signature(function).parameters.values()
    assert found.all == tuple(p.name for p in wanted)
    assert found.positional == tuple(p.name for p in wanted if "POSITIONAL_" in p.kind.name)
    rest = [p.name for p in wanted if p.kind is p.VAR_POSITIONAL]
    assert found.rest == (rest[0] if rest else None)
    assert found.any_keyword == any(p.kind is p.VAR_KEYWORD for p in wanted)


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_plainly_takes_arguments_has_a_signature_that_does(
    function: Callable[..., Any], count: int
) -> None:
    if takes(function, count):
        inspect.signature(function).bind(*range(count))


def test_plain_functions_need_no_signature() -> None:
    assert [takes(plain, n) for n in range(4)] == [False, True, True, False]


def test_a_builtin_may_have_no_names() -> None:
    assert parameters_of(max) == Parameters()
