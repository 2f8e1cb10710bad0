"""Folds at one point: accumulators in memory, and the step that folds a value into each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from lowering.native.nests.expressions import select_parts
from lowering.native.nests.extremes import is_better
from lowering.native.nests.loops import position_of
from lowering.native.nests.operations import fold_dtype
from lowering.native.nests.points import NativeNestWriter
from lowering.native.schedule import NestLoop
from lowering.native.types import Parts, element_type, number, register_parts
from lowering.plan.nests.kernel import Accumulator, Store
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import INDEX
from tracegraph.ir.scalar_values import Accumulated


@dataclass
class Folded:
    """An accumulator of a nest while it is folded, by its number in the nest."""

    number: int
    accumulator: Accumulator
    dtype: np.dtype[Any] = field(init=False)
    variable: str = ""
    position: str = ""
    private: bool = True

    def __post_init__(self) -> None:
        self.dtype = fold_dtype(self.accumulator.value.dtype)

    @property
    def identity(self) -> Parts:
        """What a fold begins with."""
        return number(self.accumulator.combiner.identity(self.dtype), self.dtype)

    @property
    def greatest(self) -> bool:
        """Whether the extreme is the greatest value, where a position is folded."""
        return self.accumulator.combiner.name == "maximum"


class FoldWriter:
    """Writes the steps of folds at one point."""

    def __init__(self, nest: NativeNestWriter) -> None:
        self.nest = nest
        self.results: dict[int, Parts] = {}
        """What was folded, by accumulator, in the dtypes of folds."""
        self.writer, self.run, self.operations = nest.writer, nest.run, nest.operations

    def begin(self, folded: Sequence[Folded]) -> None:
        """Set accumulators to their identity."""
        for each in folded:
            if not each.variable:
                each.variable = self.writer.variable(element_type(each.dtype))
                if each.accumulator.arg:
                    each.position = self.writer.variable("i64")
            self.operations.store_parts(each.dtype, each.identity, each.variable, each.private)
            if each.accumulator.arg:
                self.writer.store("i64", "0", each.position, each.private)

    def step(self, folded: Sequence[Folded], loops: Sequence[NestLoop]) -> None:
        """Fold the values at one step."""
        values = [self.run.value(each.accumulator.value) for each in folded]
        for each, value in zip(folded, values, strict=True):
            if each.accumulator.arg:
                self._step_of_position(each, value, loops)
                continue
            value = self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
            old = self.operations.load_parts(each.dtype, each.variable, each.private)
            how = each.accumulator.combiner
            new = self.operations.combine(how, each.dtype, old, value)
            self.operations.store_parts(each.dtype, new, each.variable, each.private)

    def _step_of_position(self, each: Folded, value: Parts, loops: Sequence[NestLoop]) -> None:
        """Keep the first extreme and its position: the first NaN, if there is one."""
        write = self.writer.assign
        value = self.operations.convert(each.accumulator.value.dtype, each.dtype, value)
        old = self.operations.load_parts(each.dtype, each.variable, each.private)
        position = self.run.index(position_of(loops))
        chosen = is_better(self.writer, each.dtype, each.greatest, value, old)
        new = select_parts(self.writer, register_parts(each.dtype), chosen, value, old)
        self.operations.store_parts(each.dtype, new, each.variable, each.private)
        before = self.writer.load("i64", each.position, each.private)
        after = write(f"select i1 {chosen}, i64 {position}, i64 {before}")
        self.writer.store("i64", after, each.position, each.private)

    def end(self, folded: Sequence[Folded]) -> None:
        """Make the results known, as the values of `Accumulated`."""
        for each in folded:
            if each.accumulator.arg:
                found: Parts = (self.writer.load("i64", each.position, each.private),)
            else:
                found = self.operations.load_parts(each.dtype, each.variable, each.private)
            self.set_result(each, found)

    def set_result(self, each: Folded, value: Parts) -> None:
        """Give the result of a fold, in the dtype that it is folded in."""
        dtype = each.accumulator.value.dtype
        self.results[each.number] = value
        if each.accumulator.arg:
            self.run.values[Accumulated.make(each.number, INDEX)] = value
            return
        value = self.operations.convert(each.dtype, dtype, value)
        self.run.values[Accumulated.make(each.number, dtype)] = value

    def unrolled(
        self, folded: Sequence[Folded], loops: Sequence[NestLoop], stores: Sequence[Store] = ()
    ) -> None:
        """Write every step of a fold."""
        self.begin(folded)

        def step() -> None:
            self.step(folded, loops)
            self.nest.store(stores)

        self.nest.unrolled(loops, step)
        self.end(folded)
