"""Effects: what the launches of one executable report to the host, and through which memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lowering.codegen import Unit
from lowering.codegen.parameters import (
    Channel,
    FailureWord,
    PrintRing,
    PrintSite,
    StepCount,
    StopFlag,
)
from lowering.cuda.effects.mailbox import Mailbox
from lowering.cuda.effects.print_ring import Site
from lowering.plan.owners import SlotTable
from lowering.plan.plan import Plan
from tracegraph.progress import Monitor

if TYPE_CHECKING:
    from lowering.cuda.streams.timeline import Timeline


class Effects:
    """The failures, counts and prints of one executable; `name` is the executable's.

    It holds the sites of the prints, without which their records cannot be read.
    """

    def __init__(self, plan: Plan, mailbox: Mailbox, sites: tuple[Site, ...]) -> None:
        self.name = plan.name
        self.monitors: tuple[Monitor, ...] = plan.monitors
        self._failures = plan.failures
        self._mailbox = mailbox
        self._sites = sites

    @property
    def shows(self) -> bool:
        """Whether there is something to see while a launch runs."""
        return bool(self.monitors or self._sites)

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


def connect(
    plan: Plan, unit: Unit, timeline: Timeline, slots: SlotTable
) -> tuple[Effects | None, Mapping[Channel, int]]:
    """The effects of a Plan, None if it has none, and the kernel parameters of its channels.

    The memory belongs to `slots`.

    Raises:
        MemoryError: there is not enough host memory that can be pinned.
    """
    wanted = dict.fromkeys(
        p for code in unit.kernels.values() for p in code.parameters if isinstance(p, Channel)
    )
    effects: Effects | None = None
    mailbox: Mailbox | None = None
    sites: dict[PrintSite, Site] = {}
    if any(not isinstance(channel, StopFlag) for channel in wanted):
        mailbox = Mailbox(timeline.driver, len(plan.monitors))
        slots.retain(mailbox.memory)
        for channel in wanted:
            if isinstance(channel, PrintSite):
                format_ = plan.prints[channel.site]
                sites[channel] = timeline.prints.add_site(format_, channel.record)
        effects = Effects(plan, mailbox, tuple(sites.values()))
    values: dict[Channel, int] = {}
    for channel in wanted:
        match channel:
            case StopFlag():
                slots.retain(timeline.stop_flag)
                values[channel] = timeline.stop_flag.pointer
            case PrintRing():
                slots.retain(timeline.prints.memory)
                values[channel] = timeline.prints.memory.pointer
            case PrintSite():
                values[channel] = sites[channel].number
            case FailureWord() if mailbox is not None:
                values[channel] = mailbox.failure_address
            case StepCount(monitor=monitor) if mailbox is not None:
                values[channel] = mailbox.count_address(monitor)
    return effects, values
