"""The end of the process: what is in flight says what it has to, or is stopped."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from lowering.cuda.streams.timeline import Timeline
from tracegraph.errors import DeviceLostError, TimeLimitError
from tracegraph.limits import time_limit

EXIT_SECONDS = 10.0
"""How long the process waits for programs that print, check or show progress."""


def finish(home: Timeline) -> None:
    """Let what is in flight on a device end, within a time, so that the process can.

    Programs that report something are waited for; those that still run then are stopped, and a line
    on stderr says so. Loops that report nothing are stopped at once: nobody is left to read their
    results, and the process could not end before they do.

    Raises:
        BaseException: what the programs report, or the interrupt that ended the wait; of several, a
            group.
    """
    timelines = home.stopping.all()
    flights = [(f, f.effects.name) for t in timelines for f in t.flights if f.effects is not None]
    errors: list[BaseException] = []
    cut = False
    try:
        with time_limit(EXIT_SECONDS):
            for timeline in timelines:
                if timeline.unheard:
                    timeline.settle()
    except TimeLimitError:
        cut = True
    except BaseException as error:
        errors.append(error)
    try:
        home.stop(SystemExit())
    except DeviceLostError:
        pass  # nothing is left to be stopped, and nobody to read results
    except BaseException as error:
        errors.append(error)
    for timeline in timelines:
        errors += timeline.last_words()
    if cut:
        _tell_of_cut(name for flight, name in flights if flight.stopped is not None)
    lost = [error for error in errors if isinstance(error, DeviceLostError)]
    errors = [error for error in errors if error not in lost[1:]]  # each program says so anew
    if errors:
        raise errors[0] if len(errors) == 1 else BaseExceptionGroup("at exit", errors)


def _tell_of_cut(names: Iterable[str]) -> None:
    if sys.stderr is not None:
        print(
            f"tracegraph: {', '.join(dict.fromkeys(names))} still ran {EXIT_SECONDS:g} s after the "
            "end of the script, and was stopped; to see all that it reports, wait for its result "
            "with .synchronize()",
            file=sys.stderr,
        )
