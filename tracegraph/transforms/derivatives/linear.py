"""linear_transpose: functions that are linear are transposed without a derivative being taken.

The function is linearized at zero. It is linear if no equation keeps a value that depends on the
arguments, and none is piecewise constant in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import compress
from typing import Any, ClassVar

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.control_forms import is_loop
from tracegraph.ir.derivative import Constant, Partials
from tracegraph.ir.op import Call, Effect, Elementwise
from tracegraph.ir.program import Atom, Eqn, Region, walk
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.ir.varying import EQUAL, Axes
from tracegraph.tracing.trace import Active, Trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.transforms.derivatives.activity import Activity, is_inexact
from tracegraph.transforms.derivatives.linearize import Linearizer, Tangents
from tracegraph.transforms.derivatives.tangents import matched
from tracegraph.transforms.trace_emitter import Emit
from tracegraph.transforms.transformed_calls import (
    LinearMap,
    TracedFunction,
    dense_inexact,
    recorded_values,
    require_function,
    trace_function,
)

__all__ = ["linear_transpose"]

Function = Callable[..., Any]


@entry_point
@errors.refuses(reduce_axes="there are no named axes here: sum the gradient over the lanes of vmap")
def linear_transpose(fun: Function, *types: Any) -> Function:
    """The transpose of a linear function: from cotangents of its result to those of its arguments.

    Args:
        fun: linear in its arguments together. A constant that it adds does not matter.
        *types: arrays or `ArrayType`s like its arguments, or trees of them; values do not matter.

    Returns:
        A function of a tree like the result of `fun`. It returns a tuple with a tree for each
        argument. It does not conjugate.

    Raises:
        DifferentiatedTypeError: an argument is an integer or a bool.
        NonlinearError: by the transpose, when called: an op is not linear.

    >>> import numpy as np
    >>> transposed = linear_transpose(lambda x: 2 * x.sum(), np.ones(3))
    >>> transposed(1.0)
    (array([2., 2., 2.]),)
    """
    require_function("linear_transpose", fun)
    leaves, structure = tree.flatten(types)
    known = [x if isinstance(x, ArrayType) else type_of(x) for x in leaves]
    paths = [f"argument {path}" for path in tree.paths(structure, "types")]
    _require_inexact(fun, known, paths)

    @entry_point
    def transposed(cotangent: Any) -> Any:
        cotangents, got = tree.flatten(cotangent)

        def record(trace: Trace, leaves: Sequence[Any]) -> Sequence[Any]:
            def call(tracers: Sequence[Any]) -> Any:
                return fun(*tree.unflatten(structure, tracers))

            traced = trace_function("linear_transpose", fun, call, known, trace, paths)
            wanted = traced.result.structure

            def of() -> str:
                return f"the result of {errors.function_text(fun)}"

            ct = tree.unflatten(got, leaves)
            cts = matched("linear_transpose", "cotangent", of, wanted, traced.types, ct)
            _require_checks_alone(fun, traced)
            others = [Tracer(trace, atom) for atom in traced.captures]
            if traced.effects:
                others.append(Tracer(trace, trace.token()))
                cts.append(None)
            flags = [i < len(known) for i in range(len(traced.region.params))]
            try:
                outs, found = _transposed_region(trace, traced.region, flags, others, cts)
            except errors.NonlinearError as error:
                what = f"the arguments of {errors.function_text(fun)}"
                raise errors.NonlinearError(error.op, error.source, what=what) from None
            if traced.effects:
                trace.last_token = outs[-1]
            return dense_inexact(trace, known, found)

        found = iter(recorded_values("linear_transpose", cotangents, record))
        return tree.unflatten(structure, list(found))

    return transposed


def _require_checks_alone(fun: Function, traced: TracedFunction) -> None:
    """Check that a function that is to be transposed has no effects but checks, such as that of the
    bound of a loop: it runs at zero.

    Raises:
        TransformError: it has others.
    """
    for eqn in walk(traced.region):
        if isinstance(eqn.op.form, Effect) and eqn.op.name != "require":
            raise errors.TransformError(
                "linear_transpose",
                f"{errors.function_text(fun)} must have no effects, as it runs at zero: it has "
                f"{eqn.op.name}{'' if eqn.source is None else f', at {eqn.source}'}",
            )


def _require_inexact(fun: Function, types: Sequence[ArrayType], paths: Sequence[str]) -> None:
    """Check that a function that is to be transposed takes floats or complex numbers alone.

    Raises:
        DifferentiatedTypeError: it takes integers or bools.
    """
    for type_, path in zip(types, paths, strict=True):
        if not is_inexact(type_):
            raise errors.DifferentiatedTypeError(
                "linear_transpose",
                f"{path} of {errors.function_text(fun)} is {type_}; the function must be linear in "
                "all its arguments, and they floats or complex numbers: pass 3.0 instead of 3, or "
                "an array by .astype(float); bind what is no such argument, by a lambda",
            )


_PIECEWISE = frozenset({"remainder", "fmod", "nextafter"})
"""Ops that are not linear, though their derivative is constant between jumps."""


def transpose_region(
    trace: Trace,
    region: Region,
    linear: Sequence[bool],
    others: Sequence[Any],
    cotangents: Sequence[Any],
    varying: Sequence[Axes] = (),
) -> list[Any]:
    """Record the transpose of a region in the parameters flagged as linear; `others` are the rest.

    Returns their cotangents, None for zero. The linear parameters vary over these axes of devices,
    over all if it is not known.

    Raises:
        NonlinearError: the region is not linear in them.
    """
    return _transposed_region(trace, region, linear, others, cotangents, varying)[1]


def _transposed_region(
    trace: Trace,
    region: Region,
    linear: Sequence[bool],
    others: Sequence[Any],
    cotangents: Sequence[Any],
    varying: Sequence[Axes] = (),
) -> tuple[list[Tracer], list[Any]]:
    """The results of the region at zero, and what `transpose_region` returns."""
    inner, emit, rest = Trace(trace), Emit(trace), iter(others)
    args, tangents = list[Any](), list[Any]()
    for param, flag in zip(region.params, linear, strict=True):
        args.append(emit.zeros(param.type.strong()) if flag else next(rest))
        active = flag and is_inexact(param.type)
        tangents.append(inner.param(param.type.strong()) if active else None)
    at_zero = [x for x, flag in zip(args, linear, strict=True) if flag]
    outs, found = run_linear(trace, inner, at_zero, region, args, tangents)
    with Active(inner):
        closed = inner.close([t for t in found if t is not None])
    residuals = tuple(Tracer(trace, atom) for atom in inner.captures)
    inputs = tuple(t is not None for t in tangents)
    outputs = tuple(t is not None for t in found)
    sets = list[Axes]()
    if trace.axes:
        known = iter(varying or [frozenset(trace.axes)] * sum(linear))
        each = [next(known) if flag else EQUAL for flag in linear]
        sets = [axes for axes, t in zip(each, tangents, strict=True) if t is not None]
        sets += map(trace.varying_axes, residuals)
    back = LinearMap(closed, residuals, inputs, outputs, tuple(sets)).transpose(trace, cotangents)
    return outs, [ct for ct, flag in zip(back, linear, strict=True) if flag]


def run_linear(
    primal: Trace,
    linear: Trace,
    at_zero: Sequence[Any],
    region: Region,
    args: Sequence[Any],
    tangents: Tangents,
    wanted: Sequence[bool] | None = None,
) -> tuple[list[Tracer], list[Tracer | None]]:
    """Linearize a region, as `Linearizer` does, that must be linear: those of its `args` that are
    `at_zero` have tangents.

    Raises:
        NonlinearError: the region is not linear in them.
    """
    dependent = {primal.read(x) for x in at_zero}
    return _Linear(primal, linear, dependent=dependent).run(region, args, tangents, wanted)


@dataclass(slots=True)
class _Linear(Linearizer):
    """The pass over a linear function. `dependent` are the values that depend on its arguments, and
    `affecting` those of the region that a wanted result depends on.
    """

    dependent: set[Atom] = field(default_factory=set)
    affecting: set[Atom] = field(default_factory=set)
    dependence: Activity = field(default_factory=lambda: Activity(smooth=False))
    is_transposed: ClassVar[bool] = True

    def run(
        self,
        region: Region,
        args: Sequence[Any],
        tangents: Tangents,
        wanted: Sequence[bool] | None = None,
    ) -> tuple[list[Tracer], list[Tracer | None]]:
        self.affecting = _affecting(region, wanted)
        return Linearizer.run(self, region, args, tangents, wanted)

    def _add(self, eqn: Eqn) -> None:
        before, start = len(self.linear.captures), len(self.primal.eqns)
        given = [self.primal.read(self.value(a)) in self.dependent for a in eqn.operands]
        active = [self.tangent(a) is not None for a in eqn.operands]
        if any(given) and not self.affecting.isdisjoint(eqn.outputs):
            self._require_smooth(eqn, given)
        Linearizer._add(self, eqn)
        for added in self.primal.eqns[start:]:
            flags = [atom in self.dependent for atom in added.operands]
            found = self.dependence.outputs(added, flags)
            self.dependent.update(v for v, f in zip(added.outputs, found, strict=True) if f)
        kept = list(self.linear.captures)[before:]
        stepped = any(active) and self._is_stepped(eqn, active)
        if stepped or not self.dependent.isdisjoint(kept):
            raise errors.NonlinearError(eqn.op.name, eqn.source)

    def _require_smooth(self, eqn: Eqn, given: Sequence[bool]) -> None:
        """Check that a result depends on operands, those that are `given`, by no op that is
        constant between jumps; nor do loops and branches. Derivatives are zero there, and nothing
        that is zero shows in them.

        Raises:
            NonlinearError: it does.
        """
        if isinstance(eqn.op.derivative, Constant) and not isinstance(eqn.op.form, Effect):
            raise errors.NonlinearError(eqn.op.name, eqn.source)
        if isinstance(eqn.op.form, Call) and eqn.op.name != "checkpoint":
            return  # its rules tell
        flags = list(given)
        if is_loop(eqn):
            flags = self.dependence.operands(eqn, flags)
        for region in eqn.regions:
            live = {
                p
                for p, flag in zip(region.params, flags[-len(region.params) :], strict=False)
                if flag and region.params
            }
            affecting = _affecting(region)
            for inner in region.eqns:
                live_operands = [a in live for a in inner.operands]
                if any(live_operands) and not affecting.isdisjoint(inner.outputs):
                    self._require_smooth(inner, live_operands)
                live_outputs = self.dependence.outputs(inner, live_operands)
                live.update(v for v, flag in zip(inner.outputs, live_outputs, strict=True) if flag)

    def _is_stepped(self, eqn: Eqn, active: Sequence[bool]) -> bool:
        """Whether a result is constant between jumps, in one of the operands that are active."""
        record = eqn.op.derivative
        if isinstance(record, Constant):
            return False  # known already
        if isinstance(record, Partials) and any(c == 0 for c in compress(record.of, active)):
            return True
        lost = any(v in self.relevant and self.tangent(v) is None for v in eqn.outputs)
        return eqn.op.name in _PIECEWISE or (lost and isinstance(eqn.op.form, Elementwise))


def _affecting(region: Region, wanted: Sequence[bool] | None = None) -> set[Atom]:
    """The values that a wanted result depends on in any way."""
    found = {a for i, a in enumerate(region.results) if wanted is None or wanted[i]}
    for eqn in reversed(region.eqns):
        if not found.isdisjoint(eqn.outputs):
            found.update(eqn.operands)
    return found
