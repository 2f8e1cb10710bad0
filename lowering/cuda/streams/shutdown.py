"""Shutdown: at the end of the process, launches that report something are waited for, within a
time, and loops are stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from lowering.cuda.streams.timeline import Timeline
from tracegraph.errors import DeviceLostError, TimeLimitError
from tracegraph.limits import time_limit

EXIT_SECONDS = 10.0
"""How long the process waits for programs that print, check, call back or show progress."""


def shut_down(default: Timeline) -> None:
    """Bring all that is in flight on a device to an end, so that the process can exit.

    Programs that report something are waited for; those that still run then are stopped, and a line
    on stderr says so. Loops that report nothing are stopped at once: their results cannot be read
    any more, and the process could not exit before they end.

    Args:
        default: the timeline of the device's default stream.

    Raises:
        BaseException: what the programs report, or the interrupt that ended the wait; of several, a
            group.
    """
    timelines = default.stopping.all()
    reporting = [
        (launch, launch.effects.name)
        for timeline in timelines
        for launch in timeline.in_flight
        if launch.effects is not None
    ]
    errors: list[BaseException] = []
    timed_out = False
    try:
        with time_limit(EXIT_SECONDS):
            for timeline in timelines:
                if timeline.undrained:
                    timeline.settle_calls()
    except TimeLimitError:
        timed_out = True
    except BaseException as error:
        errors.append(error)
    try:
        default.stop(SystemExit())
    except DeviceLostError:
        pass  # nothing is left to stop
    except BaseException as error:
        errors.append(error)
    left = [name for timeline in timelines for name in timeline.abandon_calls()]
    for timeline in timelines:
        errors += timeline.drain_errors()
    if left:
        _report_left(left)
    if timed_out:
        _report_stopped(name for launch, name in reporting if launch.stopped is not None)
    lost = [error for error in errors if isinstance(error, DeviceLostError)]
    errors = [error for error in errors if error not in lost[1:]]  # each program reports it anew
    if errors:
        raise errors[0] if len(errors) == 1 else BaseExceptionGroup("at exit", errors)


def _report_left(names: Iterable[str]) -> None:
    if sys.stderr is not None:
        print(
            f"tracegraph: {', '.join(dict.fromkeys(names))} had not returned {EXIT_SECONDS:g} s "
            "after the end of the script, and calls were dropped; to have all made, wait for the "
            "result of the program with .synchronize()",
            file=sys.stderr,
        )


def _report_stopped(names: Iterable[str]) -> None:
    if sys.stderr is not None:
        print(
            f"tracegraph: {', '.join(dict.fromkeys(names))} still ran {EXIT_SECONDS:g} s after the "
            "end of the script, and was stopped; to see all that it reports, wait for its result "
            "with .synchronize()",
            file=sys.stderr,
        )
