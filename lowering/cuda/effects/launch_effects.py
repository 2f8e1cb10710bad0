"""Effects: what the launches of one executable report to the host."""

from __future__ import annotations

from typing import Protocol

from lowering.cuda.effects.call_ring import CallSite
from lowering.cuda.effects.mailbox import Mailbox
from lowering.cuda.effects.print_ring import PrintSite
from tracegraph.ir.effects import Failure
from tracegraph.progress import Monitor


class Reporting(Protocol):
    """A program whose launches report: a Plan, or a recipe."""

    @property
    def name(self) -> str:
        """The name of the function."""

    @property
    def monitors(self) -> tuple[Monitor, ...]:
        """The loops whose progress is shown."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What checks report, by number."""


class Effects:
    """The failures, counts, prints and callbacks of one executable; `name` is the executable's.

    It holds the sites of prints and callbacks, without which their records cannot be read.
    """

    def __init__(
        self,
        plan: Reporting,
        mailbox: Mailbox,
        sites: tuple[PrintSite, ...],
        calls: tuple[CallSite, ...] = (),
    ) -> None:
        self.name = plan.name
        self.monitors: tuple[Monitor, ...] = plan.monitors
        self._failures = plan.failures
        self._mailbox = mailbox
        self._sites = sites
        self.calls = calls

    @property
    def shows(self) -> bool:
        """Whether there is something to see while a launch runs."""
        return bool(self.monitors or self._sites)

    @property
    def waits(self) -> bool:
        """Whether a launch may have to wait for the host."""
        return bool(self.calls)

    @property
    def asks(self) -> bool:
        """Whether a kernel may wait for an answer of the host."""
        return any(site.answer is not None for site in self.calls)

    def count(self, monitor: int) -> int:
        """The steps that a monitor has counted."""
        return self._mailbox.count(monitor)

    def reset_counts(self) -> None:
        """Set all step counts to zero."""
        self._mailbox.reset_counts()

    def raise_failure(self) -> None:
        """Raise the failure reported since the last call, if any."""
        number = self._mailbox.take_failure()
        if number is not None:
            raise self._failures[number].exception()

    def ignore_failure(self) -> None:
        """Forget a failure of a launch that was stopped."""
        self._mailbox.take_failure()
