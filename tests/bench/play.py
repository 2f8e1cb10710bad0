"""One row: its contestants prepared, checked, timed, and checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracegraph import ArrayType

from .library import Library, Unavailable, leaves, library_of
from .limits import LIMITS
from .measure import Contestant, contest, first_run
from .outcome import OURS, Outcome, reason
from .row import Draw, Inputs, Prepare, Results, Row


class Disagreement(Exception):
    """A contestant's results are not those of the others."""


def play(
    row: Row, draw: Draw, libraries: Mapping[str, Library], device: str, seconds: float
) -> Outcome:
    """Prepare, check and time the contestants of one row."""
    inputs = tuple(row.inputs(draw))
    wanted = _reference(row, inputs)
    entered: dict[str, Contestant] = {}
    failures: dict[str, str] = {}
    # Ours last: without NumPy the first peer's results count, and ours are held against them.
    for label, prepare in sorted(row.contestants.items(), key=lambda item: item[0] == OURS):
        library = libraries.get(library_of(label))
        if library is None:
            continue
        try:
            entered[label], found = _enter(label, prepare, row, library, inputs, wanted)
        except Unavailable:
            continue
        except Exception as error:  # whatever one contestant does, the others go on
            failures[label] = reason(error)
        else:
            wanted = found if wanted is None else wanted
    contestants = [entered[label] for label in row.contestants if label in entered]
    limit = _limit(row, device, failures)
    everyone = contestants if limit is None else [*contestants, limit]
    paces = contest(everyone, seconds, row.waits)
    for contestant in contestants:
        if contestant.error is None:
            _check_again(contestant, row, libraries[library_of(contestant.label)], wanted)
    failures |= {c.label: reason(c.error) for c in everyone if c.error}
    finished = [c for c in contestants if c.error is None]
    if limit is not None and limit.error is not None:
        limit = None
    return Outcome.of(row, _types(inputs), finished, limit, failures, paces)


def _limit(row: Row, device: str, failures: dict[str, str]) -> Contestant | None:
    if row.limit is None:
        return None
    try:
        return LIMITS[row.limit](device)
    except Exception as error:  # the figures of others stand without it
        failures[f"limit: {row.limit}"] = reason(error)
        return None


def _reference(row: Row, inputs: Inputs) -> Results | None:
    """NumPy's results, where it can do the row's work."""
    if "numpy" not in row.contestants:
        return None
    return tuple(map(np.asarray, leaves(row.contestants["numpy"](*inputs)())))


def _enter(
    label: str,
    prepare: Prepare,
    row: Row,
    library: Library,
    inputs: Inputs,
    wanted: Results | None,
) -> tuple[Contestant, Results]:
    """A contestant that has run once, and its results, which are as wanted.

    Raises:
        Disagreement: they are not.
    """
    library.begin(inputs)
    run = prepare(*(library.put(x) if isinstance(x, np.ndarray) else x for x in inputs))
    result, first = first_run(run, library.wait)
    found = tuple(map(library.read, leaves(result)))
    _compare(row, found, wanted)
    return Contestant(label, run, library.wait, row.work(inputs, found), first), found


def _check_again(
    contestant: Contestant, row: Row, library: Library, wanted: Results | None
) -> None:
    """One more run: what is right at first may be wrong later, as where memory is used again."""
    try:
        result, _ = first_run(contestant.run, contestant.wait)
        _compare(row, tuple(map(library.read, leaves(result))), wanted, "after timing, ")
    except Exception as error:  # as in timing: it alone is left out
        contestant.error = error


def _compare(row: Row, found: Results, wanted: Results | None, when: str = "") -> None:
    if wanted is None:
        return
    if len(found) != len(wanted):
        raise Disagreement(f"{when}there are {len(found)} results, not {len(wanted)}")
    difference = row.agrees(found, wanted)
    if difference:
        raise Disagreement(when + difference)


def _types(inputs: Inputs) -> list[str]:
    """The inputs in a few words, equal types once."""
    counts = Counter(map(_type, inputs))
    return [f"{n} × {type_}" if n > 1 else type_ for type_, n in counts.items()]


def _type(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return str(ArrayType(x.dtype, x.shape))
    return f"{x:.4g}" if isinstance(x, float) else str(x)
