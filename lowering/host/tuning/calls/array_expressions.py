"""Cheaper expressions for views and single numbers of the function of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lowering.host.arena import Array
from lowering.host.evaluation.instructions import View
from lowering.host.source.array_names import Frame, is_all
from lowering.host.source.python_source import PythonSource
from lowering.host.tuning.expressions.slices import slices_of
from lowering.host.tuning.instructions.memory_orders import is_contiguous, memory_order
from lowering.plan.nests.buffer import Buffer


class TunedFrame(Frame):
    """Names with views by reshape, transpose and slices, and with memoryviews of single numbers."""

    def __init__(
        self, source: PythonSource, memory: Mapping[Buffer, Array], bound: Mapping[Buffer, str]
    ) -> None:
        super().__init__(source, memory, bound)
        self._cells: dict[str, str] = {}

    def view_text(self, view: View, name: str) -> str:
        """A view of the array `name` of its buffer."""
        if view.shape and is_all(view):
            return f"{name}.reshape({view.shape})"  # half the time of the constructor
        order = memory_order(view)
        if order is not None and is_contiguous(view) and prod(view.shape) == view.buffer.type.size:
            shape = tuple(view.shape[dim] for dim in order)
            if shape != view.buffer.type.shape:
                name = f"{name}.reshape({shape})"
            axes = tuple(order.index(dim) for dim in range(len(order)))
            return f"{name}.T" if axes == (1, 0) else f"{name}.transpose({axes})"
        index = slices_of(view)
        if index is not None:
            return f"{name}[{self.source.name(index)}]"
        return super().view_text(view, name)

    def element(self, name: str) -> str:
        """The element of the array `name`, which has no axes, as a Python number."""
        return f"{self._cell(name)}[()]" if self.arrays((name,)) else super().element(name)

    def target(self, name: str) -> str:
        """What a Python number is assigned to, for an array without axes."""
        return f"{self._cell(name) if self.arrays((name,)) else name}[()]"

    def _cell(self, name: str) -> str:
        """The memoryview of a single number, which Python reads and writes faster than an array."""
        (array,) = self.arrays((name,))
        if name not in self._cells:
            self._cells[name] = self.source.name(array.data)
        return self._cells[name]
