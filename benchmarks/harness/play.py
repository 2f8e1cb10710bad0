"""One row: its contestants prepared, checked, timed, and checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rows.hand_loops import HAND_LOOPS
from tracegraph import ArrayType

from .library import Library, Unavailable, leaves, library_of
from .limits import LIMITS, Limit
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
    entered: dict[str, Entrant] = {}
    failures: dict[str, str] = {}
    for name, library in libraries.items():
        if library.elsewhere and library.elsewhere.library in row.contestants and row.computes:
            try:
                contestant, found = library.elsewhere.enter(name, row, inputs)
                _compare(row, found, wanted)
            except Exception as error:  # whatever one contestant does, the others go on
                failures[name] = reason(error)
            else:
                entered[name] = Entrant(contestant, tuple)
                wanted = found if wanted is None else wanted
    # Ours last: without NumPy the first peer's results count, and ours are held against them.
    for label, prepare in sorted(row.contestants.items(), key=lambda item: item[0] == OURS):
        library = libraries.get(library_of(label))
        if library is None:
            continue
        try:
            contestant, found = prepared(label, prepare, row, library, inputs)
            _compare(row, found, wanted)
        except Unavailable:
            continue
        except Exception as error:  # whatever one contestant does, the others go on
            failures[label] = reason(error)
        else:
            entered[label] = Entrant(contestant, library.results)
            wanted = found if wanted is None else wanted
    order = (*row.contestants, *libraries)
    entrants = sorted(entered.values(), key=lambda entrant: order.index(entrant.contestant.label))
    limits = _limits(row, device, inputs, wanted, failures)
    everyone = [entrant.contestant for entrant in (*entrants, *limits)]
    paces = contest(everyone, seconds, row.waits)
    for entrant in (*entrants, *limits):
        _check_again(entrant, row, wanted)
    failures |= {c.label: reason(c.error) for c in everyone if c.error}
    return Outcome.of(row, _types(inputs), _finished(entrants), _finished(limits), failures, paces)


@dataclass(frozen=True)
class Entrant:
    """A contestant, and how its results are read, where there are any to compare."""

    contestant: Contestant
    read: Callable[[Any], Results] | None


def _finished(entrants: Sequence[Entrant]) -> list[Contestant]:
    return [e.contestant for e in entrants if e.contestant.error is None]


def _limits(
    row: Row, device: str, inputs: Inputs, wanted: Results | None, failures: dict[str, str]
) -> list[Entrant]:
    entrants = []
    for name in row.limits:
        try:
            limit = {**LIMITS, **HAND_LOOPS}[name](device, inputs)
            if limit is not None:
                entrants.append(_enter_limit(name, limit, row, inputs, wanted))
        except Exception as error:  # the figures of others stand without it
            failures[f"limit: {name}"] = reason(error)
    return entrants


def _enter_limit(
    name: str, limit: Limit, row: Row, inputs: Inputs, wanted: Results | None
) -> Entrant:
    _, first = first_run(limit.run, limit.wait)
    found, read = (), None
    if limit.results is not None:
        results = limit.results
        found, read = results(), lambda _: results()
        _compare(row, found, wanted)
    work = row.work(inputs, found) if limit.work is None else limit.work
    return Entrant(Contestant(f"limit: {name}", limit.run, limit.wait, work, first), read)


def _reference(row: Row, inputs: Inputs) -> Results | None:
    """NumPy's results, where it can do the row's work."""
    if "numpy" not in row.contestants:
        return None
    return tuple(map(np.asarray, leaves(row.contestants["numpy"](*inputs)())))


def prepared(
    label: str, prepare: Prepare, row: Row, library: Library, inputs: Inputs
) -> tuple[Contestant, Results]:
    """A contestant that has run once, and its results."""
    library.begin(tuple(inputs))
    run = prepare(*(library.put(x) if isinstance(x, np.ndarray) else x for x in inputs))
    result, first = first_run(run, library.wait)
    found = library.results(result)
    return Contestant(label, run, library.wait, row.work(inputs, found), first), found


def _check_again(entrant: Entrant, row: Row, wanted: Results | None) -> None:
    """One more run: what is right at first may be wrong later, as where memory is used again."""
    contestant = entrant.contestant
    if contestant.error is None and entrant.read is not None:
        try:
            result, _ = first_run(contestant.run, contestant.wait)
            _compare(row, entrant.read(result), wanted, "after timing, ")
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
