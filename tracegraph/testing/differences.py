"""What differs between the eager run and another one, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tracegraph import tree
from tracegraph.dtypes import type_text
from tracegraph.generated.dataclass import dataclass
from tracegraph.testing.outcomes import Outcome, same_error, text_of
from tracegraph.testing.ulps import close, steps

FEW = 1e6
"""Distances of fewer ulp are shown as such."""

MOST = 5
"""Leaves, and lines of prints, that a message shows."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """By how much floating-point numbers may differ: by `ulps`, or by ``atol + rtol * |eager|``."""

    ulps: int = 0
    rtol: float = 0.0
    atol: float = 0.0

    def accepts(self, eager: Any, found: Any) -> Any:
        """Where two arrays of one type are equal. NaNs equal each other, and so do both zeros."""
        same = close(found, eager, self.ulps)
        if eager.dtype.kind in "biu" or self.rtol == self.atol == 0:
            return same
        wide = np.clongdouble if eager.dtype.kind == "c" else np.longdouble
        a, b = eager.astype(wide), found.astype(wide)
        with np.errstate(all="ignore"):
            near = np.abs(b - a) <= self.atol + self.rtol * np.abs(a)
        return same | (np.isfinite(a) & near)

    def __str__(self) -> str:
        given = [f"{self.ulps} ulp"] if self.ulps or not (self.rtol or self.atol) else []
        given += [f"{n}={v:g}" for n, v in (("rtol", self.rtol), ("atol", self.atol)) if v]
        return ", or ".join(given)


def differences(
    eager: Outcome, found: Outcome, tolerance: Tolerance, *, prints_on: bool = False
) -> list[str]:
    """Lines that say how an outcome differs from the eager one; none if it does not.

    With `prints_on`, a run that fails may print more than the eager one until it ends.
    """
    lines = list(_of_errors(eager, found))
    if not lines and eager.error is None:
        lines += of_results(eager.result, found.result, tolerance)
    if found.printed != eager.printed:
        beyond = prints_on and eager.error is not None and found.printed.startswith(eager.printed)
        lines += () if beyond or lines else _of_prints(eager.printed, found.printed)
    return lines


def _of_errors(eager: Outcome, found: Outcome) -> Iterator[str]:
    if eager.error is None and found.error is None:
        return
    if eager.error is None or found.error is None or not same_error(eager.error, found.error):
        yield f"eagerly it {end_of(eager)}, now it {end_of(found)}"


def end_of(outcome: Outcome) -> str:
    """How a run ended: what it raises or returns."""
    if outcome.error is not None:
        return f"raises {text_of(outcome.error)}"
    leaves = tree.leaves(outcome.result)
    return f"returns {', '.join(map(_type, leaves[:MOST]))}" if leaves else "returns nothing"


def _type(leaf: Any) -> str:
    array = np.asarray(leaf)
    return type_text(array.dtype, array.shape)


def of_results(eager: Any, found: Any, tolerance: Tolerance) -> list[str]:
    """Lines that say how a result differs from the eager one, leaf by leaf."""
    wanted, structure = tree.flatten(eager)
    got, found_structure = tree.flatten(found)
    if structure != found_structure:
        return [f"eagerly the result is {structure}, now it is {found_structure}"]
    paths = tree.paths(structure, "result")
    lines = [
        line
        for path, a, b in zip(paths, wanted, got, strict=True)
        if (line := of_arrays(path, np.asarray(a), np.asarray(b), tolerance))
    ]
    more = len(lines) - MOST
    return lines if more <= 0 else [*lines[:MOST], f"and {more} more leaves"]


def of_arrays(path: str, eager: Any, found: Any, tolerance: Tolerance) -> str | None:
    """A line that says how an array differs from the eager one; None if it does not."""
    if (eager.dtype, eager.shape) != (found.dtype, found.shape):
        return f"{path}: eagerly {_type(eager)}, now {_type(found)}"
    wrong = ~np.asarray(tolerance.accepts(eager, found))
    if not wrong.any():
        return None
    places = np.argwhere(wrong)
    first = tuple(places[0])
    a, b = eager[first], found[first]
    at = f" at {list(map(int, first))}" if first else ""
    line = f"{path}{at}: eagerly {a}, now {b}"
    if not _in_ulps(eager):
        return line + _count(places, wrong, eager)
    line += _apart(a, b, tolerance)
    line += _count(places, wrong, eager)
    nans = np.count_nonzero(np.isnan(eager) != np.isnan(found))
    return line + (f"; {nans} are NaN in one of the two only" if nans else "")


def _in_ulps(array: Any) -> bool:
    return array.dtype.kind not in "biu"


def _apart(eager: Any, found: Any, tolerance: Tolerance) -> str:
    """The distance of two numbers, in ulp where it is small; nothing if one is not finite."""
    if not (np.isfinite(eager) and np.isfinite(found)):
        return ""
    with np.errstate(all="ignore"):
        units = float(steps(found, eager))
        distance = float(np.abs(np.subtract(found, eager)))
    apart = f"{units:.4g} ulp" if units < FEW else f"{distance:.4g}"
    return f", {apart} apart where {tolerance} may be"


def _count(places: Any, wrong: Any, array: Any) -> str:
    if array.size == 1:
        return ""
    return f"; {len(places)} of the {wrong.size} elements of {_type(array)} differ"


def _of_prints(eager: str, found: str) -> Iterator[str]:
    """The first line in which the prints differ."""
    a, b = eager.splitlines(), found.splitlines()
    for number, (one, other) in enumerate(zip(a, b, strict=False), 1):
        if one != other:
            yield f"line {number} of the prints: eagerly {one!r}, now {other!r}"
            return
    longer, which = (a, "eagerly") if len(a) > len(b) else (b, "now")
    if len(a) == len(b):
        yield f"the prints end with {eager[-1:]!r} eagerly, now with {found[-1:]!r}"
        return
    line = longer[min(len(a), len(b))]
    yield f"prints: eagerly {len(a)} lines, now {len(b)}; {line!r} is there only {which}"


def tolerance_of(dtype: np.dtype[Any], units: int) -> float:
    """The relative tolerance for numbers of a dtype: units in the last place of 1."""
    return 0.0 if dtype.kind in "biu" else units * float(ml_dtypes.finfo(dtype).eps)
