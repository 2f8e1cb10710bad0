"""A program at a small and at a large size, with numbers of steps that are known when it is traced.

At the large size NumPy does not take part: some programs would take it minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness.row import Draw, Inputs, Results
from benchmarks.programs.language import Language
from benchmarks.programs.program import Program

from .functions import Functions, functions_of

COMPILED = ("tracegraph", "jax")

Write = Callable[[Language, Functions, int], Callable[..., Any]]
"""Makes the function of a number of steps."""


def at_sizes(
    name: str,
    title: str,
    write: Write,
    inputs: Callable[[Draw, int, np.dtype], Inputs],
    *,
    small: tuple[int, int],
    large: tuple[int, int],
    agrees: Callable[[Results, Results], str | None],
    numpy: bool = False,
) -> tuple[Program, Program]:
    """The program with the extents and steps `small` and `large`."""

    def of_steps(steps: int, language: Language) -> Callable[..., Any]:
        traced = language.transforms is not None
        return write(language, functions_of(language.xp, traced), steps)

    def at(size: int, steps: int, libraries: tuple[str, ...]) -> Program:
        return Program(
            name=name,
            title=title,
            write=partial(of_steps, steps),
            inputs=inputs,
            sizes=(size,),
            agrees=agrees,
            libraries=libraries,
        )

    return at(*small, ("numpy", *COMPILED) if numpy else COMPILED), at(*large, COMPILED)
