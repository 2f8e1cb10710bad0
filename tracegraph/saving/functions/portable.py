"""Program -> Program in which functions of files stand for those of the user.

What they have in Python is traced: the NumPy form of each, and where it is differentiated by rules
of its own, these, to the order that was asked for. Tracing is for the types of each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracegraph.errors import KernelResultError, UnsavableError
from tracegraph.ir.custom_kernels import CapturedFunction, CompiledKernel, CudaText, CustomKernel
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import DeclaredOp, Elementwise, Reduction, Scan
from tracegraph.ir.program import Eqn, Program, Region, walk
from tracegraph.ir.record import replace
from tracegraph.ir.stored.writing import unsavable
from tracegraph.ir.types import ArrayType
from tracegraph.saving.functions.rebuilt import made_of
from tracegraph.saving.functions.records import (
    ElementwiseRecord,
    FoldRecord,
    FunctionProgram,
    KernelRecord,
    Made,
    Record,
    Rule,
    record_of,
)
from tracegraph.tracing.trace import current_trace, trace_program

NOT_TRACED = "its derivative is not in the file: export it with order= as high as the derivative"


def portable(program: Program, order: int) -> Program:
    """The program without the user's Python, which can be differentiated so often by their rules.

    Raises:
        UnsavableError: a kernel was compiled before, or includes headers of the user's. The message
            has the line. What else cannot be saved is left as it is.
    """
    return _Portable().program(program, order)


class _Portable:
    """One replacement for each function of the user's, with the types of a call, and an order."""

    def __init__(self) -> None:
        self._made: dict[Any, Made] = {}

    def program(self, program: Program, order: int) -> Program:
        if not any(_calls(eqn) is not None for eqn in walk(program.body)):
            return program
        return replace(program, body=self._region(program.body, order))

    def _region(self, region: Region, order: int) -> Region:
        eqns = tuple([self._equation(eqn, order) for eqn in region.eqns])
        return replace(region, eqns=eqns)

    def _equation(self, eqn: Eqn, order: int) -> Eqn:
        if eqn.regions:
            inner = tuple([self._region(region, order) for region in eqn.regions])
            eqn = replace(eqn, regions=inner)
        called = _calls(eqn)
        if called is None or record_of(called) is not None:
            return eqn
        types = tuple([atom.type.strong() for atom in eqn.operands])
        key: tuple[Any, ...] = (called, types, tuple(eqn.attrs.items()), order)
        if isinstance(called, DeclaredOp) and isinstance(called.form, Elementwise):
            key = (called, types[0].dtype, order)
        if key not in self._made:
            self._made[key] = made_of(self._record(eqn, called, types, order))
        made = self._made[key]
        if isinstance(made, KernelCall):
            return replace(eqn, attrs={"call": made})
        return replace(eqn, op=made)

    def _record(self, eqn: Eqn, called: Made, types: Sequence[ArrayType], order: int) -> Record:
        if isinstance(called, KernelCall):
            return self._kernel(eqn, called, types, order)
        if isinstance(called.form, Elementwise):
            return self._elementwise(eqn, called, called.form, order)
        return self._fold(eqn, called, order)

    def _elementwise(
        self, eqn: Eqn, op: DeclaredOp, form: Elementwise, order: int
    ) -> ElementwiseRecord:
        dtype, count = eqn.operands[0].type.dtype, len(eqn.operands)
        one = [ArrayType(dtype, (1,))] * count
        result, rule = eqn.outputs[0].type.dtype, op.rule
        function = op.function
        assert function is not None
        if result.kind not in _INEXACT or dtype.kind not in _INEXACT:
            rule = None
        elif rule is not None and not isinstance(rule, str):
            given = rule if isinstance(rule, tuple) else (rule,)
            rule = tuple([self._partial(each, one, op.where, order) for each in given])
        return ElementwiseRecord(
            op.name,
            op.where,
            count,
            dtype,
            result,
            tuple(sorted(form.c.items())),
            form.definition,
            form.cost,
            self._function(lambda *xs: [function(*xs)], one, op.where, order),
            rule,
        )

    def _partial(
        self, given: Any, types: Sequence[ArrayType], where: str, order: int
    ) -> FunctionProgram | int:
        """A partial derivative, or a number that is one."""
        if not callable(given):
            return int(given)
        return self._rule(lambda *xs: [given(*xs)], types, where, order)

    def _fold(self, eqn: Eqn, op: DeclaredOp, order: int) -> FoldRecord:
        assert isinstance(op.form, (Reduction, Scan))
        combiner, type_ = op.form.combiner, eqn.operands[0].type.strong()
        is_reduction = isinstance(op.form, Reduction)
        axes = eqn.attrs["axes"] if is_reduction else (eqn.attrs["axis"],)
        combine, given = op.function, op.rule
        assert combine is not None
        rule: Rule = given if given == "reference" or given is None else ()
        if type_.dtype.kind not in _INEXACT:
            rule = None
        elif rule == () and is_reduction:
            zeros: list[bool] = []

            def tangent(x: Any, t: Any) -> list[Any]:
                return _without_zeros([given((x,), (t,), axes)], zeros)

            rule = (self._rule(tangent, [type_, type_], op.where, order, zeros),)
        elif rule == ():
            rule = "reference"  # partial results have the derivative of their recurrence
        return FoldRecord(
            "reduce" if is_reduction else "accumulate",
            combiner.name,
            op.where,
            type_.dtype,
            combiner.identity(type_.dtype),
            tuple(sorted(combiner.c.items())),
            combiner.definition,
            self._function(
                lambda x, y: [combine(x, y)],
                [ArrayType(type_.dtype, (1,))] * 2,
                op.where,
                order,
            ),
            rule,
            type_.shape,
            tuple(axes),
        )

    def _kernel(
        self, eqn: Eqn, call: KernelCall, types: Sequence[ArrayType], order: int
    ) -> KernelRecord:
        kernel = call.kernel
        code = _text_of(eqn, kernel)
        launch = call.launch(types)
        rule: Any = kernel.derivative
        if callable(rule):
            rule = (self._kernel_rule(call, rule, types, order),)
        names = [name for name in kernel.parameters if name in kernel.scalars]
        return KernelRecord(
            kernel.name,
            kernel.where,
            kernel.parameters,
            tuple(zip(names, [scalar.value for scalar in call.scalars], strict=True)),
            launch.text,
            code.entry,
            tuple(types),
            launch.out_types,
            launch.single,
            launch.grid,
            launch.block,
            launch.shared_bytes,
            launch.cluster,
            launch.cooperative,
            tuple(sorted(kernel.aliases.items())),
            kernel.batching is not None,
            self._function(lambda *xs: list(call.traced(*xs)), types, kernel.where, order),
            rule,
        )

    def _kernel_rule(
        self, call: KernelCall, rule: Any, types: Sequence[ArrayType], order: int
    ) -> FunctionProgram:
        launch, zeros = call.launch(types), list[bool]()
        moving = [type_.dtype.kind in _INEXACT for type_ in types]

        def tangents_of(*leaves: Any) -> list[Any]:
            directions = iter(leaves[len(types) :])
            given = [next(directions) if moves else None for moves in moving]
            primals = tuple(call.arguments(leaves[: len(types)]))
            tangents = tuple(call.arguments(given, [None] * len(call.scalars)))
            found = launch.tangents(call.kernel.label, rule, rule(primals, tangents))
            return _without_zeros(found, zeros)

        every = [*types, *[type_ for type_, moves in zip(types, moving, strict=True) if moves]]
        return self._rule(tangents_of, every, call.kernel.where, order, zeros)

    def _function(
        self, function: Callable[..., Any], types: Sequence[ArrayType], where: str, order: int
    ) -> FunctionProgram:
        """The NumPy form of a function; without one, it can run on a GPU all the same."""
        try:
            program = _traced(function, types, where, order)
        except KernelResultError:  # on a GPU its results would be as wrong
            raise
        except Exception as error:  # whatever the user's function raises for traced values
            said = str(error).partition("\n")[0]
            return FunctionProgram(None, f"it cannot be traced: {type(error).__name__}: {said}")
        if program.effects:
            return FunctionProgram(None, "it has effects")
        return FunctionProgram(self.program(program, order))

    def _rule(
        self,
        function: Callable[..., Any],
        types: Sequence[ArrayType],
        where: str,
        order: int,
        zeros: Sequence[bool] = (),
    ) -> FunctionProgram:
        """A rule, which is traced if it is needed."""
        if order < 1:
            return FunctionProgram(None, NOT_TRACED)
        program = _traced(function, types, where, order - 1)
        if program.effects:
            raise UnsavableError(f"the derivative of {where} must have no effects to be saved")
        return FunctionProgram(self.program(program, order - 1), zeros=tuple(zeros))


_INEXACT = "fcV"
"""The kinds of dtypes that have tangents, bfloat16 being a V."""


def _calls(eqn: Eqn) -> Made | None:
    """The function of the user's that an equation applies."""
    if isinstance(eqn.op, DeclaredOp):
        return eqn.op
    call = eqn.attrs.get("call") if eqn.op.name == "custom_kernel" else None
    return call if isinstance(call, KernelCall) else None


def _text_of(eqn: Eqn, kernel: CustomKernel) -> CudaText:
    match kernel.code:
        case CudaText(include_paths=()) as code:
            return code
        case CudaText(include_paths=folders):
            why = (
                f"it includes headers from {', '.join(map(repr, folders))}; put them into its text"
            )
        case CompiledKernel():
            why = "it was compiled before; declare it by its text, with source="
        case CapturedFunction():
            why = "it captures what a Python function of the user's enqueues"
        case _:
            why = "it is a graph that others have built"
    raise unsavable(eqn, f"{kernel.label}: {why}")


def _traced(
    function: Callable[..., Any], types: Sequence[ArrayType], where: str, order: int
) -> Program:
    from tracegraph.passes import optimize

    def differentiated(*leaves: Any) -> Any:
        trace = current_trace()
        assert trace is not None
        trace.orders = order
        return function(*leaves)

    name = where.partition(" (")[0]
    return optimize(trace_program(differentiated, [t.strong() for t in types], name))


def _without_zeros(results: Sequence[Any], zeros: list[bool]) -> list[Any]:
    zeros[:] = [result is None for result in results]
    return [result for result in results if result is not None]
