"""Programs and their gradients, in the libraries that have both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .language import Language
from .program import Program

BoundedLoop = Callable[[Any, Any, Any, int], Any]

LIBRARIES = ("tracegraph", "jax")


def with_gradient(
    name: str,
    title: str,
    write: Callable[[Language, BoundedLoop], Callable[..., Any]],
    argnums: int | tuple[int, ...] = 0,
    **common: Any,
) -> tuple[Program, Program]:
    """A program that computes a number, and one that computes its gradient, too.

    `write` takes a language and its loop of at most n steps: of the program alone, the fastest one.
    `argnums` are the arguments by which it is differentiated; `common` are the other fields.
    """

    def write_function(language: Language) -> Callable[..., Any]:
        return write(language, language.bounded_loop)

    def write_gradient(language: Language) -> Callable[..., Any]:
        function = write(language, language.reversible_loop)
        return language.transforms.value_and_grad(function, argnums)

    function = Program(name=name, title=title, write=write_function, libraries=LIBRARIES, **common)
    gradient = Program(
        name=f"{name}_gradient",
        title=f"{title}, and its gradient",
        write=write_gradient,
        libraries=LIBRARIES,
        derivative_of=name,
        **common,
    )
    return function, gradient
