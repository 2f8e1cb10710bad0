"""LaunchEnd: the event behind a launch, known before the launch is made."""

from __future__ import annotations

from collections.abc import Callable

from lowering.cuda.interface import Event


class LaunchEnd:
    """Passed when a launch that is about to be made has run.

    What the launch uses is held for it beforehand, so that an interrupt at any point finds it held.
    The event is recorded by `end`; or, if an interrupt came before that, when this is first asked,
    which is later, but behind the launch. `made` is set when the launch was made, or failed.
    """

    __slots__ = ("_event", "_record", "made")

    def __init__(self, record: Callable[[], Event]) -> None:
        self._record = record
        self._event: Event | None = None
        self.made = False

    def end(self) -> Event:
        """The event, recorded now if there is none."""
        if self._event is None:
            self._event = self._record()
        return self._event

    def __call__(self) -> bool:
        """Whether the launch has run; not before it was made."""
        return self.made and self.end()()
