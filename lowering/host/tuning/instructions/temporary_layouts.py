"""Memory layout of temporaries: that of the values they are computed from.

A call whose operands and output have one memory order runs as one long inner loop. If the operands
disagree, or there are none of the output's shape, the order is that of most loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterable

from lowering.host.evaluation.evaluate import Evaluator
from lowering.host.evaluation.instructions import NumpyValue
from lowering.host.tuning.groups.access_orders import common_order, orders
from lowering.host.tuning.instructions.memory_orders import memory_order


class OperandLayout:
    """The layout of one evaluator's temporaries."""

    def __init__(self, run: Evaluator) -> None:
        self._run = run
        self._common: list[tuple[int, ...] | None] = []  # empty until it is needed

    def __call__(
        self, shape: tuple[int, ...], axes: tuple[int, ...], inputs: Iterable[NumpyValue]
    ) -> tuple[int, ...] | None:
        """The memory order of a temporary of this shape that varies along these axes."""
        orders = {memory_order(value) for value in inputs if value.shape == shape}
        if len(orders) == 1:
            return orders.pop()
        rank = sum(extent > 1 for extent in self._run.extents)
        return self.common if len(axes) == rank else None

    @property
    def has_accesses(self) -> bool:
        """Whether a load or store of the nest varies along all axes."""
        return bool(orders(self._run.accesses, self._run.extents, self._run.axes_of))

    @property
    def common(self) -> tuple[int, ...] | None:
        """The memory order of values that vary along all axes."""
        if not self._common:
            run = self._run
            self._common.append(common_order(run.accesses, run.extents, run.axes_of))
        return self._common[0]
