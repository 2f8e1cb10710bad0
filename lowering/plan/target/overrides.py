"""Schedules chosen for all loops and branches that the user has not pinned one for, and the forms
of matrix products, factorizations, updates that need an order, the sources of stacks, and the
operands of products and Fourier transforms.

They are used wherever they are possible. Set by `override`, for tests, or in the environment:
``TRACEGRAPH_SCHEDULES="predicated-branches,unrolled-loops=4"``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from lowering.plan.target.scope import Scope
from lowering.plan.target.target import OperandForm
from tracegraph.control.schedules import BranchSchedule, LoopSchedule

ProductForm = Literal["library", "nests"]
"""Matrix products as library calls, where the library has them, or all as reduction nests."""

FactorizationForm = Literal["library", "own", "small"]
"""Factorizations by LAPACK's routines, by own algorithms, or by kernels for small matrices."""

UpdateForm = Literal["sorted", "sequential"]
"""Updates that need an order: sorted by element, or one after the other."""

SourceForm = Literal["selected"]
"""Sources of a stack are selected by position, where a map could be unrolled along the axis."""

VARIABLE = "TRACEGRAPH_SCHEDULES"
_WORDS = (
    "conditional-branches, predicated-branches, conditional-loops, unrolled-loops[=STEPS], "
    "one-kernel-loops, library-products, nest-products, library-factorizations, "
    "own-factorizations, small-factorizations, copied-operands, in-place-operands, sorted-updates, "
    "sequential-updates, "
    "selected-sources"
)


@dataclass(frozen=True, slots=True)
class Choices:
    """The schedules of branches and loops, the forms of matrix products, of factorizations, of
    updates that need an order, of the sources of stacks and of the operands of products and Fourier
    transforms, None for what the cost model says; how many steps an iteration makes; and the
    threads of loops in one kernel.
    """

    branches: BranchSchedule | None = None
    loops: LoopSchedule | None = None
    unroll: int | None = None
    products: ProductForm | None = None
    scope: Scope | None = None
    factorizations: FactorizationForm | None = None
    updates: UpdateForm | None = None
    sources: SourceForm | None = None
    operands: OperandForm | None = None


_overridden: ContextVar[Choices | None] = ContextVar("overridden", default=None)


@contextmanager
def override(
    branches: BranchSchedule | None = None,
    loops: LoopSchedule | None = None,
    unroll: int | None = None,
    products: ProductForm | None = None,
    scope: Scope | None = None,
    factorizations: FactorizationForm | None = None,
    updates: UpdateForm | None = None,
    sources: SourceForm | None = None,
    operands: OperandForm | None = None,
) -> Iterator[None]:
    """Within the context, use these schedules and forms.

    The environment variable does not count then.

    >>> with override(loops="unrolled", unroll=3):
    ...     declared().unroll
    3
    """
    chosen = Choices(
        branches, loops, unroll, products, scope, factorizations, updates, sources, operands
    )
    token = _overridden.set(chosen)
    try:
        yield
    finally:
        _overridden.reset(token)


def declared() -> Choices:
    """What holds now.

    Raises:
        ValueError: the environment variable has a word that means nothing.
    """
    chosen = _overridden.get()
    if chosen is not None:
        return chosen
    return _parsed(os.environ.get(VARIABLE, ""))


@lru_cache(maxsize=16)
def _parsed(words: str) -> Choices:
    """The choices that are listed; asked for by every Plan."""
    choices = Choices()
    for word in filter(None, map(str.strip, words.split(","))):
        choices = _with(choices, word)
    return choices


def _with(choices: Choices, word: str) -> Choices:
    unrolled = re.fullmatch(r"unrolled-loops(?:=([1-9][0-9]*))?", word)
    if unrolled:
        factor = unrolled[1]
        return replace(choices, loops="unrolled", unroll=int(factor) if factor else None)
    match word:
        case "conditional-loops":
            return replace(choices, loops="conditional")
        case "one-kernel-loops":
            return replace(choices, loops="one_kernel")
        case "conditional-branches":
            return replace(choices, branches="conditional")
        case "predicated-branches":
            return replace(choices, branches="predicated")
        case "library-products":
            return replace(choices, products="library")
        case "nest-products":
            return replace(choices, products="nests")
        case "library-factorizations":
            return replace(choices, factorizations="library")
        case "own-factorizations":
            return replace(choices, factorizations="own")
        case "small-factorizations":
            return replace(choices, factorizations="small")
        case "copied-operands":
            return replace(choices, operands="copied")
        case "in-place-operands":
            return replace(choices, operands="in_place")
        case "sorted-updates":
            return replace(choices, updates="sorted")
        case "sequential-updates":
            return replace(choices, updates="sequential")
        case "selected-sources":
            return replace(choices, sources="selected")
    raise ValueError(f"{VARIABLE} has {word!r}; it takes a list, separated by commas, of {_WORDS}")
