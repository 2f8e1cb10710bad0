"""InFlightLaunch: a launch with loops, which may never end by itself."""

from __future__ import annotations

from collections.abc import Callable

from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.interface import Allocation
from lowering.cuda.streams.launched_together import LaunchedTogether
from tracegraph.errors import StoppedError


class InFlightLaunch:
    """A launch with loops, until it is over.

    `stopped` names the exception that stopped it, if one did: then it has no results. `flag` is the
    word that ends its loops, if that is not the one of the device. `together` has the launches on
    other devices that it waits for: they are stopped together.
    """

    __slots__ = (
        *("_event", "_record", "_start", "_stopped", "effects", "flag", "number", "over"),
        "together",
    )

    def __init__(
        self,
        number: int,
        record: Callable[[], Callable[[], bool]],
        effects: Effects | None,
        start: Callable[[], None] | None,
        flag: Allocation | None = None,
        together: LaunchedTogether | None = None,
    ) -> None:
        self.number = number
        self.effects = effects
        self.flag = flag
        self.together = together
        # keeps the executable: freeing it would wait for a loop that may never end
        self._start = start
        self.over = False
        self._stopped: str | None = None
        self._record = record
        self._event: Callable[[], bool] | None = None

    @property
    def stopped(self) -> str | None:
        """The exception that stopped it, if one did."""
        return (None if self.together is None else self.together.stopped) or self._stopped

    def stop(self, reason: BaseException) -> None:
        """Note that it is stopped, with all that were launched together with it."""
        self._stopped = type(reason).__name__
        together = self.together
        if together is not None:
            together.stop(self._stopped)

    def passed(self) -> bool:
        """Whether it has ended on the device."""
        event = self._event
        if event is None:
            if self.over:
                return True
            event = self._event = self._record()
        return event()

    def complete(self) -> None:
        """Mark it as over, and release what it holds."""
        self._stopped = self.stopped  # whoever stops others has said so before
        self.over = True
        self._event = self.effects = self._start = self.flag = self.together = None

    def check(self) -> None:
        """Raise StoppedError if it was stopped."""
        if self.together is not None:
            self.together.obey()
        stopped = self.stopped
        if stopped is not None:
            raise StoppedError(stopped)


def later(one: InFlightLaunch | None, other: InFlightLaunch | None) -> InFlightLaunch | None:
    """Of the launches that two arrays wait for, the one that ends last; None if both are over.

    A stop ends all in flight: if the earlier one is stopped, so is the later one.

    Raises:
        StoppedError: one of them was stopped.
    """
    found = None
    for pending in (one, other):
        if pending is None:
            continue
        pending.check()
        if not pending.over and (found is None or pending.number > found.number):
            found = pending
    return found
