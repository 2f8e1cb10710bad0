"""The command: which rows, with whom, on what; figures as they come, then a table."""

from __future__ import annotations

import argparse
import json
import secrets
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tracegraph import ArrayType
from tracegraph.jit import default_device

from . import report
from .library import OPENERS, PEERS, Library, Unavailable, leaves, library_of
from .limits import LIMITS
from .machine import describe
from .measure import Contestant, contest, first_run
from .outcome import OURS, Outcome
from .row import Draw, Inputs, Prepare, Results, Row
from .rows import ROWS

SECONDS = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 1 where tracegraph failed, or gave other results than NumPy."""
    options = _parser().parse_args(arguments)
    warnings.simplefilter("ignore")  # what libraries say about their own compilers
    peers = options.peers or PEERS[options.device]
    seed = secrets.randbits(32) if options.seed is None else options.seed
    libraries, missing = _open((OURS, *peers), options.device)
    try:
        machine = describe(options.device)
    except Exception as error:  # cuda.core, the driver and its loader have classes of their own
        raise SystemExit(f"{options.device} cannot be used: {error}; use --device host") from error
    run = {
        **machine,
        "device": options.device,
        "versions": {library.name: library.version for library in libraries.values()},
        "missing": missing,
        "shapes": options.shapes,
        "seed": seed,
        "seconds_per_row": options.seconds,
    }
    print(report.heading(run), flush=True)
    outcomes = []
    for row in options.rows:
        if options.device in row.devices:
            draw = Draw.of(row.name, seed, options.device, options.shapes)
            outcomes.append(_play(row, draw, libraries, options.device, options.seconds))
            print(f"\n{report.block(outcomes[-1])}", flush=True)
    print(f"\n{report.table(outcomes)}")
    if options.json:
        record = {**run, "rows": [outcome.record() for outcome in outcomes]}
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(OURS in outcome.failures for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, epilog=f"Rows: {', '.join(ROWS)}."
    )
    parser.add_argument(
        "--device", choices=("cuda", "host"), default=default_device().split(":")[0]
    )
    parser.add_argument("--rows", type=_rows, default=tuple(ROWS.values()), metavar="A,B")
    parser.add_argument("--peers", type=_peers, metavar="A,B", help="default: all of the device")
    parser.add_argument("--shapes", choices=("fixed", "random"), default="fixed")
    parser.add_argument("--seed", type=int, help="of inputs; chosen and printed where not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of timing a row; compilation comes on top"
    )
    return parser


def _rows(text: str) -> tuple[Row, ...]:
    return tuple(ROWS[name] for name in _known(text, ROWS, "row"))


def _peers(text: str) -> tuple[str, ...]:
    return _known(text, OPENERS, "library")


def _known(text: str, names: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    for name in chosen:
        if name not in names:
            raise argparse.ArgumentTypeError(f"no {kind} {name!r}; there are {', '.join(names)}")
    return chosen


def _open(names: Sequence[str], device: str) -> tuple[dict[str, Library], dict[str, str]]:
    """The libraries that can be used here, and why others cannot."""
    opened, missing = {}, {}
    for name in names:
        try:
            opened[name] = OPENERS[name](device)
        except Exception as error:  # each library has classes of its own for this
            missing[name] = _reason(error)
    return opened, missing


def _play(
    row: Row, draw: Draw, libraries: Mapping[str, Library], device: str, seconds: float
) -> Outcome:
    """Prepare, check and time the contestants of one row."""
    inputs = tuple(row.inputs(draw))
    wanted = _reference(row, inputs)
    contestants, failures = [], {}
    for label, prepare in row.contestants.items():
        if library_of(label) not in libraries:
            continue
        library = libraries[library_of(label)]
        try:
            contestants.append(_enter(label, prepare, row, library, inputs, wanted))
        except Unavailable:
            continue
        except Exception as error:  # whatever one contestant does, the others go on
            failures[label] = _reason(error)
    limit = _limit(row, device, failures)
    everyone = contestants if limit is None else [*contestants, limit]
    paces = contest(everyone, seconds, row.waits)
    failures |= {c.label: _reason(c.error) for c in everyone if c.error}
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
        failures[f"limit: {row.limit}"] = _reason(error)
        return None


class Disagreement(Exception):
    """A contestant's results are not NumPy's."""


def _reference(row: Row, inputs: Inputs) -> Results | None:
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
) -> Contestant:
    """A contestant that has run once, with results that agree.

    Raises:
        Disagreement: they do not.
    """
    library.begin(inputs)
    run = prepare(*(library.put(x) if isinstance(x, np.ndarray) else x for x in inputs))
    result, first = first_run(run, library.wait)
    found = tuple(map(library.read, leaves(result)))
    difference = row.agrees(found, wanted) if wanted is not None else None
    if difference:
        raise Disagreement(difference)
    return Contestant(label, run, library.wait, row.work(inputs, found), first)


def _types(inputs: Inputs) -> list[str]:
    """The inputs in a few words, equal types once."""
    counts = Counter(map(_type, inputs))
    return [f"{n} × {type_}" if n > 1 else type_ for type_, n in counts.items()]


def _type(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return str(ArrayType(x.dtype, x.shape))
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _reason(error: Exception) -> str:
    """The class and the first line of an error."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200]}" if text else type(error).__name__
