"""Code generation for a plan: a Python function that binds arguments, runs nodes, and returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lowering.host.arena import POISON, Array
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.evaluation.programs import Programs
from lowering.host.result_pool import RESULTS, is_pooled
from lowering.host.section_times import SectionTimes
from lowering.host.source.array_names import Frame
from lowering.host.source.call_emitter import NestWriter
from lowering.host.source.control_flow import GraphWriter
from lowering.host.source.python_source import PythonSource
from lowering.plan.nests.buffer import Buffer
from lowering.plan.plan import Plan
from tracegraph import progress
from tracegraph.staging.calls.clock import clock

if TYPE_CHECKING:
    from random import Random

Body = Callable[[Sequence[Any], Callable[[], None] | None], Sequence[Array]]
"""Takes the arguments and the function that loops call at every step; returns the results."""


class Copied:
    """Counts the bytes of arguments that could not be read in place.

    `last` has the time and the bytes of the last copy for each input, by number.
    """

    def __init__(self) -> None:
        self.nbytes = 0
        self.last: dict[int, tuple[float, int]] = {}

    def contiguous(self, number: int, argument: Any, dtype: np.dtype[Any] | None = None) -> Array:
        """A counted copy of an array or a number, in row-major order, for an input."""
        copy: Array = np.array(argument, dtype, order="C")
        self.nbytes += copy.nbytes
        self.last[number] = clock(), copy.nbytes
        return copy


class PlanWriter:
    """Writes the function of a plan; `copied` counts while it runs, `section_times` measures.

    `memory` has the arrays of scratch and constants.
    """

    def __init__(
        self,
        plan: Plan,
        programs: Programs,
        memory: Mapping[Buffer, Array],
        workspace: Array,
        order: Random | None,
    ) -> None:
        self.copied = Copied()
        self.section_times = SectionTimes()
        self._plan = plan
        self._source = PythonSource()
        self._inputs = {buffer: f"a{i}" for i, buffer in enumerate(plan.inputs)}
        fresh = (buffer for buffer in plan.outputs if buffer.space == "output")
        self._outputs = {buffer: f"o{i}" for i, buffer in enumerate(fresh)}
        self._bound = {**self._inputs, **self._outputs}
        self._frame = Frame(self._source, memory, self._bound)

        def write_nest(program: NestProgram) -> None:
            NestWriter(program, self._frame, workspace).write()

        times = self.section_times
        GraphWriter(plan, programs, self._frame, write_nest, order, times).write(plan.graph)

    def function(self, poisoned: Sequence[Array] | None) -> Body:
        """The function; before each call it poisons these arrays and the results, if given."""
        source, results = self._source, _sequence(self._bound[b] for b in self._plan.outputs)
        head = "def run(arguments, check_time):"
        binding = [*self._argument_lines(), *self._result_lines(poisoned)]
        body = source.function([head, *binding], results, self._plan.name)
        if not self._plan.monitors:
            return body

        def with_bars(arguments: Sequence[Any], check: Callable[[], None] | None) -> Any:
            with progress.bars():
                return body(arguments, check)

        return with_bars

    def _argument_lines(self) -> list[str]:
        if not self._inputs:
            return []
        name, lines = self._source.name, [f"{_sequence(self._inputs.values())} = arguments"]
        for number, (buffer, variable) in enumerate(self._inputs.items()):
            if not buffer.type.shape:  # it may be a number
                made = f"{name(np.array)}({variable}, {name(buffer.type.dtype)})"
                lines.append(f"if type({variable}) is not {name(np.ndarray)}: {variable} = {made}")
            elif buffer in self._frame.dense:
                # 257: C-contiguous and aligned, in one test
                made = f"{name(self.copied.contiguous)}({number}, {variable})"
                lines.append(f"if {variable}.flags.num & 257 != 257: {variable} = {made}")
        return lines

    def _result_lines(self, poisoned: Sequence[Array] | None) -> list[str]:
        name = self._source.name
        lines = [f"{name(_poison)}({name(array)})" for array in poisoned or ()]
        for buffer, variable in self._outputs.items():
            shape, dtype = buffer.type.shape, name(buffer.type.dtype)
            if is_pooled(buffer.type):
                lines.append(f"{variable} = {name(RESULTS.maker(buffer.type))}()")
            else:
                lines.append(f"{variable} = {name(np.empty)}({shape}, {dtype})")
            if poisoned is not None:
                lines.append(f"{name(_poison)}({variable})")
        return lines


def _sequence(names: Iterable[str]) -> str:
    return "[" + ", ".join(names) + "]"


def _poison(memory: Array) -> None:
    memory.reshape(-1).view(np.uint8).fill(POISON)
