"""One assertion: a function gives the same traced as eagerly, in every way of running it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph import tree
from tracegraph.arrays.array import Array
from tracegraph.errors import value_text
from tracegraph.errors.tracebacks import entry_point
from tracegraph.generated.dataclass import dataclass
from tracegraph.testing.differences import Tolerance, differences, end_of
from tracegraph.testing.hints import hints
from tracegraph.testing.outcomes import Outcome, outcome
from tracegraph.testing.trials import Trial
from tracegraph.testing.ways import WAYS, Way, chosen_ways


@dataclass(frozen=True, slots=True)
class Fault:
    """A run that differs from the eager one: what it did, and how it differs, in lines."""

    found: Outcome
    lines: Sequence[str]


@entry_point
def assert_traced_equals_eager(
    function: Callable[..., Any],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    ulps: int = 2,
    rtol: float = 0.0,
    atol: float = 0.0,
    raises: type[Exception] | tuple[type[Exception], ...] = (),
    ways: str | Iterable[str] | Mapping[str, Callable[..., Any]] = "all",
) -> Any:
    """Assert that `function` gives the same in every way of running it as eagerly under NumPy.

    Compared are the structure of the result, dtypes, shapes and values, what `debug.print` prints,
    and errors that are expected. NaNs equal each other, and so do both zeros. No run may write to
    an argument that is not donated.

    Args:
        function: takes and returns pytrees of arrays and numbers. A jitted one keeps its static and
            donated arguments, and runs on every device all the same.
        *args: what it is called with. The eager run gets copies.
        kwargs: what it is called with by keyword.
        ulps: units in the last place by which floating-point numbers may differ from the eager
            ones. Integers and booleans must be equal.
        rtol: or, the difference allowed relative to the eager number, plus `atol`.
        atol: or, the absolute difference allowed, plus `rtol`.
        raises: errors that the eager run may end with, and that each way must end with then: of the
            same type, or a subclass, and with the same message unless NumPy worded it.
        ways: ``"all"`` that are possible for this function on this machine; one name or several, as
            in ``["poisoned", "unrolled"]``; or ways of your own, as a mapping from names to
            functions that are called as ``run(function, *args, **kwargs)``. docs/testing.md lists
            the names.

    Returns:
        What the eager run returned; None if it raised one of `raises`, as all ways did.

    Raises:
        AssertionError: a way differs. The message says which, where, by how much, and how to run
            this way alone.
        TypeError: `function` is not callable, or a tolerance is not a number.
        ValueError: there is no such way, or a tolerance is negative.
        Exception: what the eager run raised, if it is not one of `raises`.

    >>> assert_traced_equals_eager(lambda x: {"twice": x + x}, np.arange(3))
    {'twice': array([0, 2, 4])}
    """
    if not callable(function):
        raise TypeError(f"assert_traced_equals_eager takes a function, got {value_text(function)}")
    for kind in raises if isinstance(raises, tuple) else (raises,):
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError(
                f"raises is an exception class, or a tuple of some, not {value_text(raises)}"
            )
    tolerance = _tolerance(ulps, rtol, atol)
    chosen = chosen_ways(ways)
    trial = Trial(function, args, kwargs or {})
    eager = outcome(trial.eager)
    if eager.error is not None and not isinstance(eager.error, raises):
        raise eager.error
    traced = Outcome() if isinstance(ways, Mapping) else outcome(lambda: trial.traced)
    if traced.error is not None:
        _require_same_refusal(trial, eager, traced.error)
        return None
    if ways == "all":
        chosen = [way for way in chosen if way.possible(trial)]
    before = [np.array(leaf) for leaf in _arrays(trial)]
    faults = {way: _fault(trial, way, eager, tolerance, before) for way in chosen}
    if any(faults.values()):
        outcomes = {way: fault.found if fault else None for way, fault in faults.items()}
        known = [] if isinstance(ways, Mapping) else hints(trial, eager, outcomes, traced)
        raise AssertionError(_message(trial, faults, known))
    return eager.result


def _tolerance(ulps: int, rtol: float, atol: float) -> Tolerance:
    for name, value in (("ulps", ulps), ("rtol", rtol), ("atol", atol)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise TypeError(f"{name} is a number, not {type(value).__qualname__}")
        if not value >= 0:
            raise ValueError(f"{name} must not be negative: got {value}")
    return Tolerance(ulps, rtol, atol)


def _arrays(trial: Trial) -> Iterator[Any]:
    """The arguments that no run may write to."""
    if not trial.donates:
        leaves = tree.leaves((trial.args, trial.kwargs))
        yield from (leaf for leaf in leaves if isinstance(leaf, np.ndarray | Array))


def _fault(
    trial: Trial, way: Way, eager: Outcome, tolerance: Tolerance, before: Sequence[Any]
) -> Fault | None:
    """The first run of a way that differs, if one does."""
    bits = None
    for number, run in enumerate(_runs(trial, way)):
        found = outcome(run)
        lines = differences(eager, found, tolerance, prints_on=way.on_gpu)
        for leaf, old in zip(_arrays(trial), before, strict=True):
            if np.asarray(leaf).tobytes() != old.tobytes():
                lines.append(f"it has written to an argument, which was {old}")
        if not lines and found.error is None and not way.on_gpu:
            again = [np.asarray(leaf).tobytes() for leaf in tree.leaves(found.result)]
            if bits is not None and again != bits:
                lines.append(f"run {number + 1} gives other bits than the first")
            bits = again
        if lines:
            return Fault(found, lines)
    return None


def _runs(trial: Trial, way: Way) -> Sequence[Callable[[], Any]]:
    """The runs of a way; where planning fails, one that raises the error."""
    try:
        return way.runs(trial)
    except Exception as error:
        failure = error

    def fail() -> Any:
        raise failure

    return [fail]


def _require_same_refusal(trial: Trial, eager: Outcome, error: Exception) -> None:
    """Tracing has failed: the eager run must have failed in the same way.

    Raises:
        AssertionError: it has not; raised from the error.
    """
    lines = differences(eager, Outcome(error=error, printed=eager.printed), Tolerance())
    if lines:
        raise AssertionError(
            f"{trial.name} cannot be traced, and so no way was run: eagerly it {end_of(eager)}, "
            f"traced it raises\n  {type(error).__qualname__}: {error}"
        ) from error


def _message(trial: Trial, faults: Mapping[Way, Fault | None], known: Iterable[str]) -> str:
    """The first fault in full, hints, and which other ways differ and which do not."""
    different = [(way, fault) for way, fault in faults.items() if fault is not None]
    (way, fault), *others = different
    lines = [f"{trial.name} differs from the eager run when it runs {way.about} ({way.name!r}):"]
    lines += [f"  {line}" for line in fault.lines]
    lines += [f"hint: {line}" for line in known]
    if way.name in WAYS:
        setting = f"; a program runs like it under {way.setting}" if way.setting else ""
        lines.append(f"this way alone: assert_traced_equals_eager(…, ways={way.name!r}){setting}")
    same = [other.name for other, differs in faults.items() if differs is None]
    if others:
        lines.append(f"also different: {', '.join(other.name for other, _ in others)}")
    if same:
        lines.append(f"as eagerly: {', '.join(same)}")
    return "\n".join(lines)
