"""Choices for all loops, branches, products, … that the user has not pinned one for.

They are used wherever they are possible. Set by `override`, for tests, or in the environment, by
the words of a table: ``TRACEGRAPH_SCHEDULES="predicated-branches,unrolled-loops=4"``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from lowering.plan.target.scope import Scope
from lowering.plan.target.target import OperandForm
from tracegraph.control.schedules import BranchSchedule, LoopSchedule
from tracegraph.generated.dataclass import dataclass

ProductForm = Literal["library", "nests"]
"""Matrix products as library calls, where the library has them, or all as reduction nests."""

FactorizationForm = Literal["library", "own", "small"]
"""Factorizations by LAPACK's routines, by own algorithms, or by kernels for small matrices."""

UpdateForm = Literal["sorted", "sequential"]
"""Updates that need an order: sorted by element, or one after the other."""

SourceForm = Literal["selected"]
"""Sources of a stack are selected by position, where a map could be unrolled along the axis."""

CollectiveForm = Literal["library"]
"""Collectives outside of loops in one kernel are calls of the library, whatever their size."""

VARIABLE = "TRACEGRAPH_SCHEDULES"


def _schedules(field: str, names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    return {f"{name.replace('_', '-')}-{field}": (field, name) for name in names}


WORDS: Mapping[str, tuple[str, str]] = {
    **_schedules("branches", get_args(BranchSchedule)),
    **_schedules("loops", get_args(LoopSchedule)),
    "library-products": ("products", "library"),
    "nest-products": ("products", "nests"),
    "library-factorizations": ("factorizations", "library"),
    "own-factorizations": ("factorizations", "own"),
    "small-factorizations": ("factorizations", "small"),
    "copied-operands": ("operands", "copied"),
    "in-place-operands": ("operands", "in_place"),
    "sorted-updates": ("updates", "sorted"),
    "sequential-updates": ("updates", "sequential"),
    "selected-sources": ("sources", "selected"),
    "library-collectives": ("collectives", "library"),
}
"""The field of `Choices` that each word sets, and its value. ``=4`` behind that of an unrolled loop
is the number of steps."""

UNROLLED = "unrolled-loops"


@dataclass(frozen=True, slots=True)
class Choices:
    """What is chosen for all; None for what the cost model says.

    Args:
        branches: the schedule of branches.
        loops: the schedule of loops.
        unroll: how many steps an iteration makes.
        products: the form of matrix products.
        scope: the threads of loops in one kernel.
        factorizations: the form of factorizations.
        updates: the form of updates that need an order.
        sources: the form of the sources of stacks.
        operands: where products and Fourier transforms find their operands.
        collectives: the form of collectives between devices.
    """

    branches: str | None = None
    loops: str | None = None
    unroll: int | None = None
    products: ProductForm | None = None
    scope: Scope | None = None
    factorizations: FactorizationForm | None = None
    updates: UpdateForm | None = None
    sources: SourceForm | None = None
    operands: OperandForm | None = None
    collectives: CollectiveForm | None = None

    @property
    def setting(self) -> str:
        """The environment variable that chooses this; empty if none does."""
        chosen = {each.name: getattr(self, each.name) for each in fields(self)}
        steps, scope = chosen.pop("unroll"), chosen.pop("scope")
        words = [word for word, (name, value) in WORDS.items() if chosen[name] == value]
        if steps is not None:
            words = [f"{word}={steps}" if word == UNROLLED else word for word in words]
        return "" if scope else f'{VARIABLE}="{",".join(words)}"'


_overridden: ContextVar[Choices | None] = ContextVar("overridden", default=None)


@contextmanager
def override(chosen: Choices | None = None, **fields: Any) -> Iterator[None]:
    """Within the context, these choices hold, or those with these fields.

    The environment variable does not count then.

    >>> with override(loops="unrolled", unroll=3):
    ...     declared().unroll
    3
    """
    token = _overridden.set(Choices(**fields) if chosen is None else chosen)
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
        name, equals, steps = word.partition("=")
        counted = name == UNROLLED and steps.isdecimal() and int(steps) > 0
        if name not in WORDS or (equals and not counted):
            raise ValueError(
                f"{VARIABLE} has {word!r}; it takes a list, separated by commas, of "
                f"{', '.join(WORDS).replace(UNROLLED, f'{UNROLLED}[=STEPS]')}"
            )
        field, value = WORDS[name]
        chosen: dict[str, Any] = {field: value}
        if field == "loops":
            chosen["unroll"] = int(steps) if counted else None
        choices = replace(choices, **chosen)
    return choices
