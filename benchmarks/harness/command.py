"""The command: which rows, with whom, on what; figures as they come, then a table."""

from __future__ import annotations

import argparse
import json
import secrets
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import GROUPS, OWN_ROWS, ROWS
from tracegraph.staging.compiler import default_device

from . import report
from .caches import empty_caches
from .library import OPENERS, PEERS, Library
from .machine import describe
from .outcome import OURS, reason
from .play import play
from .row import Draw, Row

SECONDS = 2.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks; 1 where tracegraph failed, or gave other results than the peers."""
    options = _parser().parse_args(arguments)
    with empty_caches():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    warnings.simplefilter("ignore")  # what libraries say about their own compilers
    peers = options.peers or PEERS[options.device]
    seed = secrets.randbits(32) if options.seed is None else options.seed
    libraries, missing = _open((OURS, *peers), options.device)
    if OURS in missing:
        raise SystemExit(f"{OURS} cannot be opened: {missing[OURS]}")
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
            draw = Draw.of(row.derivative_of or row.name, seed, options.device, options.shapes)
            outcomes.append(play(row, draw, libraries, options.device, options.seconds))
            print(f"\n{report.block(outcomes[-1])}", flush=True)
    print(f"\n{report.table(outcomes)}")
    if report.means(outcomes):
        print(f"\n{report.means(outcomes)}")
    if report.gradients(outcomes):
        print(f"\n{report.gradients(outcomes)}")
    if options.json:
        record = {**run, "rows": [outcome.record() for outcome in outcomes]}
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(OURS in outcome.failures for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, epilog=_names()
    )
    parser.add_argument(
        "--device", choices=("cuda", "host"), default=default_device().split(":")[0]
    )
    parser.add_argument("--rows", type=_rows, default=OWN_ROWS, metavar="A,B")
    parser.add_argument("--peers", type=_peers, metavar="A,B", help="default: all of the device")
    parser.add_argument("--shapes", choices=("fixed", "random"), default="fixed")
    parser.add_argument("--seed", type=int, help="of inputs; chosen and printed where not given")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of timing a row; compilation comes on top"
    )
    return parser


def _names() -> str:
    rows, groups = (", ".join(names) for names in ([row.name for row in OWN_ROWS], GROUPS))
    return f"Rows: {rows}. Run where they are named: {groups}."


def _rows(text: str) -> tuple[Row, ...]:
    """The rows of names and of groups, each once."""
    named = {name: (row,) for name, row in ROWS.items()}
    chosen = _known(text, {**named, **GROUPS}, "row")
    return tuple({row.name: row for name in chosen for row in {**named, **GROUPS}[name]}.values())


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
            missing[name] = reason(error)
    return opened, missing
