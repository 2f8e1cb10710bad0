"""The command: records NumPy's tests once, replays their calls, and prints tables."""

from __future__ import annotations

import argparse
import fnmatch
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import calls, report
from .calls import Call
from .processes import replay_all
from .replaying import ACCEPTED, DIFFERS, OUTCOMES, RAW, REFUSED

CACHE = Path(__file__).parents[2] / "build" / f"numpy-{np.__version__}-calls.pickle"

LAST = CACHE.with_name("numpy-calls-outcomes.pickle")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the status is 1 if a call differs that the list does not name."""
    options = _options(argv)
    if options.only_record:
        from .recording import record

        record().save(CACHE)
        return 0
    if options.record or not CACHE.exists():
        subprocess.run([sys.executable, "-m", "tests.numpy_calls", "--only-record"], check=True)
    recording = calls.load(CACHE)
    if options.last:
        replayed = [
            pair for pair in pickle.loads(LAST.read_bytes()) if _is_chosen(pair[0], options)
        ]
    else:
        chosen = [c for c in recording.calls if _is_chosen(c, options)][:: options.every]
        replayed = list(zip(chosen, replay_all(chosen, options.jobs, options.eager), strict=True))
        LAST.write_bytes(pickle.dumps(replayed))
    if options.show:
        print(
            report.shown(
                replayed, options.outcome or (DIFFERS, ACCEPTED, REFUSED, RAW), options.show
            )
        )
    print(report.by_function(replayed))
    print()
    print(report.summary(recording, replayed))
    return int(any(o.kind == DIFFERS for _, o in replayed))


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.numpy_calls", description=__doc__)
    parser.add_argument("--only", action="append", help="functions, as in 'numpy.linalg.*'")
    parser.add_argument("--group", help="'ufuncs', 'methods of ufuncs', 'indexing', …")
    parser.add_argument("--test", help="calls of tests whose name holds this text")
    parser.add_argument("--show", type=int, default=0, help="calls to print of each function")
    parser.add_argument("--outcome", action="append", choices=OUTCOMES, help="those to print")
    parser.add_argument("--every", type=int, default=1, help="replay each n-th call alone")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--eager", action="store_true", help="with Arrays, outside of jit")
    parser.add_argument("--last", action="store_true", help="print outcomes of the last run alone")
    parser.add_argument("--record", action="store_true", help="record the tests again")
    parser.add_argument("--only-record", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _is_chosen(call: Call, options: argparse.Namespace) -> bool:
    return (
        (not options.only or any(fnmatch.fnmatch(call.target, f"*{o}") for o in options.only))
        and (not options.group or call.group == options.group)
        and (not options.test or options.test in call.test)
    )
