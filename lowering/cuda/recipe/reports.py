"""Reports: the memory through which launches of a recipe report to the host, as kernels know it."""

from __future__ import annotations

from collections.abc import Mapping

from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.effects.mailbox import Mailbox
from lowering.cuda.effects.print_ring import PrintSite
from lowering.cuda.interface import Allocation, HostAllocation
from lowering.cuda.recipe.recipe import Base, Recipe, RecipeKernel
from lowering.cuda.streams.timeline import Timeline
from lowering.plan.owners import SlotTable, size_of
from lowering.plan.records.print_records import Record
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """What launches report to the host, if anything, and the words of bases by index."""

    effects: Effects | None
    words: Mapping[tuple[Base, int], int]


def connect_recipe(recipe: Recipe, timeline: Timeline, slots: SlotTable) -> Reported:
    """Memory for all that the kernels of a recipe report; it belongs to `slots`.

    Raises:
        MemoryError: there is not enough host memory that can be pinned.
    """
    wanted = {
        (place.base, place.index)
        for node in recipe.nodes
        if isinstance(node, RecipeKernel)
        for place in node.parameters
        if place.base >= Base.STOP_FLAG
    }
    words: dict[tuple[Base, int], int] = {}
    effects: Effects | None = None
    if (Base.STOP_FLAG, 0) in wanted:
        _keep(slots, "stop flag", timeline.stop_flag)
        words[Base.STOP_FLAG, 0] = timeline.stop_flag.pointer
        wanted.remove((Base.STOP_FLAG, 0))
    if wanted:
        mailbox = Mailbox(timeline.driver, len(recipe.monitors))
        _keep(slots, "mailbox", mailbox.memory)
        words[Base.FAILURE, 0] = mailbox.failure_address
        for monitor in range(len(recipe.monitors)):
            words[Base.STEPS, monitor] = mailbox.count_address(monitor)
        sites: list[PrintSite] = []
        if recipe.prints:
            ring = timeline.prints
            _keep(slots, "print ring", ring.memory)
            words[Base.PRINT_RING, 0] = ring.memory.pointer
            for number, (format_, types) in enumerate(
                zip(recipe.prints, recipe.records, strict=True)
            ):
                sites.append(ring.add_site(format_, Record.of(types)))
                words[Base.PRINT_SITE, number] = sites[-1].number
        effects = Effects(recipe, mailbox, tuple(sites))
    return Reported(effects, words)


def _keep(slots: SlotTable, what: str, memory: Allocation | HostAllocation) -> None:
    slots.retain(memory)
    slots.name(what, memory.pointer, size_of(memory))
