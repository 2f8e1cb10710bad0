"""Programs called as the functions that they were traced from: with arrays, and while tracing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.ir.interpret import run
from tracegraph.ir.op import get
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType
from tracegraph.saving.functions.records import FunctionProgram, KernelRecord
from tracegraph.saving.inlining import inlined
from tracegraph.tracing.trace import current_trace, trace_program
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.batching.vmap import vmap

BLOCK = 1 << 15
"""Elements that NumPy computes at once: what is between operations stays in the cache."""


def results_of(program: Program, operands: Sequence[Any]) -> list[Any]:
    """The results for these operands: recorded if one is traced, else computed with NumPy."""
    if not any(isinstance(x, Tracer) for x in operands):
        return list(run(program, *operands))
    trace = current_trace()
    assert trace is not None
    atoms = [trace.read(x) for x in operands]
    for number, (atom, type_) in enumerate(zip(atoms, program.in_types, strict=True)):
        if atom.type != type_:  # it is weak, or of another dtype
            (cast,) = trace.record(get("cast"), [atom], {"dtype": type_.dtype})
            atoms[number] = cast.atom
    return inlined(trace, program, [Tracer(trace, atom) for atom in atoms])


class _Function:
    """A function of a file; messages call it by the place where the user wrote it."""

    def __init__(self, traced: FunctionProgram, label: str, where: str) -> None:
        self.traced, self.label, self.written_at = traced, label, where
        self.__name__ = self.__qualname__ = where.partition(" (")[0]

    @property
    def program(self) -> Program:
        """Its program.

        Raises:
            CustomKernelError: it could not be traced when it was exported.
        """
        if self.traced.program is None:
            raise errors.CustomKernelError(
                self.label,
                f"has no NumPy form in the file: {self.traced.fault}",
                "run it on a GPU, or export it with a reference that can be traced",
            )
        return self.traced.program


class _Rule(_Function):
    @property
    def program(self) -> Program:
        """Its program.

        Raises:
            CustomRuleError: it was not traced when it was exported.
        """
        if self.traced.program is None:
            raise errors.CustomRuleError(self.label, self.traced.fault)
        return self.traced.program


class ElementsFunction(_Function):
    """A function of arrays of one dtype that broadcast, whose program takes an element of each."""

    def __init__(self, traced: FunctionProgram, label: str, where: str) -> None:
        super().__init__(traced, label, where)
        self._of_size: Callable[[int], Program] = lru_cache(64)(self._batched)

    def __call__(self, *operands: Any) -> Any:
        """The values for all elements, broadcast."""
        shape = np.broadcast_shapes(*map(np.shape, operands))
        size = prod(shape)
        types = self.program.in_types
        flat = []
        for x, type_ in zip(operands, types, strict=True):
            array = x if isinstance(x, Tracer) else np.asarray(x)
            if array.dtype != type_.dtype:
                array = array.astype(type_.dtype)
            flat.append(np.broadcast_to(array, shape).reshape((size, *type_.shape)))
        if size <= BLOCK or any(isinstance(x, Tracer) for x in flat):
            (found,) = results_of(self._of_size(size), flat)
            return found.reshape(shape)
        parts = []
        for start in range(0, size, BLOCK):
            block = [x[start : start + BLOCK] for x in flat]
            parts += results_of(self._of_size(len(block[0])), block)
        return np.concatenate(parts).reshape(shape)

    def _batched(self, size: int) -> Program:
        from tracegraph.passes import optimize

        program = self.program
        types = [ArrayType(t.dtype, (size, *t.shape)) for t in program.in_types]
        lanes = vmap(lambda *xs: results_of(program, xs)[0], axis_size=size)
        return optimize(trace_program(lambda *xs: [lanes(*xs)], types, program.name))


class PartialDerivative(ElementsFunction, _Rule):
    """A partial derivative of an elementwise function."""


class KernelFunction(_Function):
    """The reference of a kernel, which takes all of its arguments."""

    def __init__(self, record: KernelRecord) -> None:
        super().__init__(record.function, f"kernel {record.where}", record.where)
        self._record = record

    def __call__(self, *arguments: Any) -> Any:
        """The outputs, in a tuple if the kernel's are."""
        found = results_of(self.program, _of_arrays(self._record, arguments))
        return found[0] if self._record.single else tuple(found)


class KernelRule(_Rule):
    """The rule of a kernel for tangents."""

    def __init__(self, record: KernelRecord, traced: FunctionProgram) -> None:
        super().__init__(traced, f"kernel {record.where}", record.where)
        self._record = record

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The tangents of the outputs, None for zero."""
        directions = [t for t in _of_arrays(self._record, tangents) if t is not None]
        given = [*_of_arrays(self._record, primals), *directions]
        found = iter(results_of(self.program, given))
        every = tuple([None if zero else next(found) for zero in self.traced.zeros])
        return every[0] if self._record.single else every


def _of_arrays(record: KernelRecord, arguments: Sequence[Any]) -> list[Any]:
    """The arguments that are arrays."""
    scalars = dict(record.scalars)
    pairs = zip(record.parameters, arguments, strict=True)
    return [value for name, value in pairs if name not in scalars]


class FoldRule(_Rule):
    """The rule of a reduction for tangents: for arrays of one shape, and for lanes of such."""

    def __init__(
        self, traced: FunctionProgram, where: str, shape: tuple[int, ...], axes: tuple[int, ...]
    ) -> None:
        super().__init__(traced, f"reduction {where}", where)
        self._shape, self._axes = shape, axes

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any], axes: Any) -> Any:
        """The tangent of the result, None for zero.

        Raises:
            CustomRuleError: it is asked for another shape, or other axes.
        """
        (x,), (t,), program = primals, tangents, self.program
        lanes = len(x.shape) - len(self._shape)
        moved = tuple([axis + lanes for axis in self._axes])
        if lanes < 0 or x.shape[lanes:] != self._shape or tuple(axes) != moved:
            raise errors.CustomRuleError(
                self.label,
                f"has its derivative in the file for arrays of the shape {self._shape} folded over "
                f"the axes {self._axes}, not for {x.shape} and {tuple(axes)}",
            )
        if self.traced.zeros[0]:
            return None
        fold: Callable[..., Any] = lambda *given: results_of(program, given)[0]  # noqa: E731
        for _ in range(lanes):
            fold = vmap(fold)
        return fold(x, t)
