"""Channels: the kernel parameters through which launches report, and the memory behind them."""

from __future__ import annotations

from collections.abc import Mapping

from lowering.codegen import Unit
from lowering.codegen.kernel_parameters import (
    Answer,
    CallRingAddress,
    CallSiteNumber,
    Channel,
    FailureWord,
    PrintRingAddress,
    PrintSiteNumber,
    StepCount,
    StopFlagAddress,
)
from lowering.cuda.effects import call_ring
from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.effects.mailbox import Mailbox
from lowering.cuda.effects.print_ring import PrintSite
from lowering.cuda.interface import Allocation, HostAllocation
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.owners import SlotTable, size_of
from lowering.plan.plan import Plan


def connect(
    plan: Plan, unit: Unit, timeline: Timeline, slots: SlotTable
) -> tuple[Effects | None, Mapping[Channel, int]]:
    """The effects of a Plan, None if it has none, and the kernel parameters of its channels.

    The memory belongs to `slots`.

    Raises:
        MemoryError: there is not enough host memory that can be pinned.
    """
    wanted = dict.fromkeys(
        p for code in unit.launches for p in code.parameters if isinstance(p, Channel)
    )
    effects: Effects | None = None
    mailbox: Mailbox | None = None
    sites: dict[PrintSiteNumber, PrintSite] = {}
    calls: dict[int, call_ring.CallSite] = {}
    answers: dict[int, call_ring.AnswerMemory] = {}
    if any(not isinstance(channel, StopFlagAddress) for channel in wanted):
        mailbox = Mailbox(timeline.driver, len(plan.monitors))
        _keep(slots, "mailbox", mailbox.memory)
        for channel in wanted:
            if isinstance(channel, PrintSiteNumber):
                format_ = plan.prints[channel.site]
                sites[channel] = timeline.prints.add_site(format_, channel.record)
            elif isinstance(channel, Answer):
                made = call_ring.AnswerMemory(timeline.driver, channel.record)
                answers[channel.site] = made
                _keep(slots, "answer", made.memory)
        for channel in wanted:
            if isinstance(channel, CallSiteNumber):
                site = channel.site
                calls[site] = timeline.callbacks.ring.add_site(
                    plan.callbacks[site], channel.record, answers.get(site)
                )
        effects = Effects(plan, mailbox, tuple(sites.values()), tuple(calls.values()))
    values: dict[Channel, int] = {}
    for channel in wanted:
        match channel:
            case StopFlagAddress():
                _keep(slots, "stop flag", timeline.stop_flag)
                values[channel] = timeline.stop_flag.pointer
            case PrintRingAddress():
                _keep(slots, "print ring", timeline.prints.memory)
                values[channel] = timeline.prints.memory.pointer
            case PrintSiteNumber():
                values[channel] = sites[channel].number
            case CallRingAddress():
                _keep(slots, "callback ring", timeline.callbacks.ring.memory)
                values[channel] = timeline.callbacks.ring.memory.pointer
            case CallSiteNumber(site=site):
                values[channel] = calls[site].number
            case Answer(site=site):
                values[channel] = answers[site].memory.pointer
            case FailureWord() if mailbox is not None:
                values[channel] = mailbox.failure_address
            case StepCount(monitor=monitor) if mailbox is not None:
                values[channel] = mailbox.count_address(monitor)
    return effects, values


def _keep(slots: SlotTable, what: str, memory: Allocation | HostAllocation) -> None:
    """Let the slots hold memory that has one use, and name it."""
    slots.retain(memory)
    slots.name(what, memory.pointer, size_of(memory))
