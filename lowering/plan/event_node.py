"""EventNode: a record of an event of other code, or a wait for it."""

from __future__ import annotations

from typing import ClassVar

from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.buffer_fields import Reads
from lowering.plan.nodes import Node
from lowering.plan.owners import Slot
from tracegraph.inspection.palette import Tone
from tracegraph.ir.events import EventUse, TimeMark
from tracegraph.ir.record import record
from tracegraph.user_source import Source


@record
class EventNode(Node):
    """Records an event behind `values`, or waits for it, or marks the time. Only at the top.

    It is a barrier: all nodes before it are done, and those behind it have not begun.
    """

    kind: ClassVar[str] = "event"
    tone: ClassVar[Tone] = "event"
    noun: ClassVar[str] = "an event"
    is_ordered: ClassVar[bool] = True
    is_barrier: ClassVar[bool] = True
    fixed_buffers: ClassVar[frozenset[Buffer]] = frozenset()
    keeps: ClassVar[tuple[Slot, ...]] = (Slot("event", 0),)

    use: EventUse | TimeMark
    values: Reads[tuple[StridedArray, ...]] = ()
    sources: tuple[Source, ...] = ()

    @property
    def graph_nodes(self) -> tuple[str, ...]:
        waits = isinstance(self.use, EventUse) and self.use.action == "wait"
        return ("wait_event",) if waits else ("event_record",)

    @property
    def is_rewriting(self) -> bool:
        return isinstance(self.use, EventUse) and self.use.action == "wait"

    @property
    def name(self) -> str:
        return self.use.action

    @property
    def title(self) -> str:
        if isinstance(self.use, TimeMark):
            return f"time {self.use.section.name}: {self.use.action}"
        return f"event {self.use.action}"
