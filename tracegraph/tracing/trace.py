"""Traces: each records the equations of one region; the innermost of a thread is current.

Regions are closed. A value of an outer region, or an array that the function closes over, becomes a
parameter of the region that uses it (`Trace.read`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Op, Scatter, get
from tracegraph.ir.program import (
    IN_ORDER,
    NO_ATTRS,
    NO_HINTS,
    Atom,
    Eqn,
    Hints,
    Literal,
    Program,
    Region,
    Value,
    no_paths,
)
from tracegraph.ir.types import ArrayType, scalar_type, type_of
from tracegraph.ir.varying import EQUAL, Axes, VaryingAxes
from tracegraph.modes import is_deterministic
from tracegraph.tracing import views
from tracegraph.tracing.foreign import is_foreign
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.layouts import result_order, set_order
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.tracer import Tracer
from tracegraph.user_source import Source, calls_traced, user_source


class _Innermost(threading.local):
    # No context variable: a thread that inherits one would record into its parent's trace.
    trace: Trace | None = None


innermost = _Innermost()
"""`innermost.trace` is the innermost trace in progress in this thread, or None."""

outermost: set[Trace] = set()
"""The outermost traces in progress in all threads. If it is empty, no thread is tracing."""


_PARAMETER = "a parameter of this branch or loop body"


class Uses:
    """What the function being traced makes use of; all its regions share it."""

    def __init__(self) -> None:
        self.selects = False
        """Whether it reads at a traced mask, so that operands may be selected elements."""
        self.transposes = False
        """Whether it has arrays that are not laid out by rows."""
        self.sets_read = 0
        """How often it was asked over which axes of devices a value varies."""


class Trace:
    """The recording of one region. `parent` is the trace of the region around it.

    `device` is where the program is to run. It is unknown, and "host", where only types are sought.
    """

    def __init__(self, parent: Trace | None, device: str = "host") -> None:
        self.parent = parent
        self.device: str = device if parent is None else parent.device
        self.params: list[Value] = []
        self.eqns: list[Eqn] = []
        self.captures: dict[Value, Value] = {}  # of the parent's region -> parameter here
        # outermost only: arrays that the function closes over, by their content
        self.constants: dict[tuple[ArrayType, bytes], Value] = {}
        self.adopted: dict[int, tuple[Any, Any]] = {}  # foreign arrays by id, and our copies
        self.depth: int = 0 if parent is None else parent.depth + 1
        # how often transforms around differentiate what is recorded here
        self.orders: int = 0 if parent is None else parent.orders
        self.uses: Uses = Uses() if parent is None else parent.uses
        # of a region with effects: the token that the first takes, and the one that the last yields
        self.first_token: Value | None = None
        self.last_token: Tracer | None = None
        # axes of devices that have a name here, with the number of devices along each; and over
        # which of them values vary, as far as that was asked
        self.axes: Mapping[str, int] = {} if parent is None else parent.axes
        self.varying: dict[Atom, Axes] = {}
        self._analysed = 0  # the number of equations among these
        self.index_error: errors.TracerIndexError | None = None  # the last one raised
        # the line of the equations that a transform derives from another; None: the user's frame
        self.source: Source | None = None
        self._definitions: dict[Atom, Eqn] = {}
        self._defining = 0  # the number of equations among these

    def param(
        self,
        type_: ArrayType,
        origin: str | Callable[[], str] | None = None,
        varying: Axes | None = None,
    ) -> Tracer:
        """A new parameter of the region, which varies over these axes; None: it is not known."""
        value = Value(type_)
        self.params.append(value)
        if varying is not None:
            self.varying[value] = varying
        return Tracer(self, value, origin or _PARAMETER)

    def read(self, x: Any) -> Atom:
        """`x` as an operand here: a value or literal of this region.

        Raises:
            EscapedTracerError: a tracer whose trace is over.
            BooleanMaskError: elements that a traced mask selects.
            TypeError: not an array or a number.
        """
        if isinstance(x, Tracer):
            return x.atom if x.owner is self else self._lift(x.owner, x.atom, x)
        if isinstance(x, Selected):
            x.refuse("{read} as an array", is_of_shape=True)
        if is_foreign(x):
            x = self.adopt(x)
        type_ = type_of(x)
        if type_.shape == ():
            return Literal.of(x, type_)
        return self._constant(x, type_)

    def adopt(self, x: Any) -> Any:
        """A foreign array as an Array: the same one each time, for its elements are copied.

        Raises:
            TypeError: it does not give its elements, or has a dtype that arrays cannot have.
        """
        if self.parent is not None:
            return self.parent.adopt(x)
        known = self.adopted.get(id(x))
        if known is None:
            try:
                found = FUNCTIONS["adopted"](x)
            except TypeError as error:
                text = str(error)
                if not text.startswith("is "):
                    raise
                raise TypeError(f"a value that the traced function captures {text}") from error
            known = self.adopted[id(x)] = (x, found)
        return known[1]

    def _lift(self, owner: views.Recorder, atom: Atom, tracer: Tracer) -> Atom:
        if owner is self or isinstance(atom, Literal):
            return atom
        if self.parent is None:
            raise errors.EscapedTracerError(tracer)
        outer = self.parent._lift(owner, atom, tracer)
        return self._capture(outer)

    def _capture(self, outer: Atom) -> Atom:
        if isinstance(outer, Literal):
            return outer
        if outer not in self.captures:
            self.captures[outer] = Value(outer.type)
        return self.captures[outer]

    def _constant(self, x: Any, type_: ArrayType) -> Atom:
        if self.parent is not None:
            return self._capture(self.parent._constant(x, type_))
        content = np.asarray(x, type_.dtype).tobytes()  # later writes by the user stay outside
        known = self.constants.get((type_, content))
        if known is None:
            known = self.constants[type_, content] = Value(type_)
        return known

    def token(self) -> Atom:
        """The token that the next effect takes: that of the last effect, or else the region's own.

        The outermost region makes its first token itself.
        """
        if self.last_token is None:
            if self.parent is None:
                operands, attrs = [Literal.of(False, TOKEN)], {"shape": TOKEN.shape}
                (self.last_token,) = self.record(get("broadcast_to"), operands, attrs)
            else:
                self.first_token = Value(TOKEN)
                self.last_token = Tracer(self, self.first_token)
        return self.last_token.atom

    def perform(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Append an effect, ordered after those before."""
        atoms = [self.read(x) for x in operands]
        (self.last_token,) = self.record(op, [self.token(), *atoms], attrs)

    def record(
        self,
        op: Op,
        operands: Sequence[Atom],
        attrs: Mapping[str, Any],
        regions: tuple[Region, ...] = (),
        hints: Hints = NO_HINTS,
    ) -> tuple[Tracer, ...]:
        """Type-check and append one equation; its results as tracers."""
        types = op.result_types([a.type for a in operands], attrs, regions)
        outputs = tuple([Value(t) for t in types])
        own = dict(attrs) if attrs else NO_ATTRS
        if is_deterministic():
            hints = _in_order(op, hints)
        source = self.source or user_source(2)  # this frame and its caller are this package's
        self.eqns.append(Eqn(op, tuple(operands), outputs, own, regions, source, hints))
        return tuple([Tracer(self, value) for value in outputs])

    def origin_of(self, atom: Atom) -> str:
        """Where a value comes from, for messages: a parameter, or the line that computed it."""
        if self.parent is not None and any(atom is param for param in self.params):
            return _PARAMETER
        eqn = next((e for e in self.eqns if any(atom is output for output in e.outputs)), None)
        if eqn is None or eqn.source is None:
            return "a local value"
        return f"computed at {eqn.source}"

    def definitions(self) -> Mapping[Atom, Eqn]:
        """The equations by what they yield, of all that are recorded so far."""
        for eqn in self.eqns[self._defining :]:
            self._definitions.update(dict.fromkeys(eqn.outputs, eqn))
        self._defining = len(self.eqns)
        return self._definitions

    def varying_axes(self, x: Any) -> Axes:
        """The axes of devices over which a value varies that is traced here or around.

        A parameter of which nothing is known varies over all that have a name.
        """
        if not self.axes or not isinstance(x, Tracer) or isinstance(x.atom, Literal):
            return EQUAL
        self.uses.sets_read += 1
        owner = x.owner
        return owner._set_of(x.atom) if isinstance(owner, Trace) else frozenset(self.axes)

    def _set_of(self, atom: Atom) -> Axes:
        if isinstance(atom, Literal) or not self.axes:
            return EQUAL
        analysis = VaryingAxes()
        while self._analysed < len(self.eqns):
            eqn = self.eqns[self._analysed]
            self._analysed += 1
            sets = tuple(map(self._known_set, eqn.operands))
            self.varying.update(zip(eqn.outputs, analysis.outputs(eqn, sets), strict=True))
        return self._known_set(atom)

    def _known_set(self, atom: Atom) -> Axes:
        if isinstance(atom, Literal):
            return EQUAL
        known = self.varying.get(atom)
        if known is None:
            known = self.varying[atom] = self._set_outside(atom)
        return known

    def _set_outside(self, atom: Atom) -> Axes:
        """The axes of what a parameter stands for, which no equation here has computed."""
        for outer, own in self.captures.items():
            if own is atom and self.parent is not None:
                return self.parent._set_of(outer)
        if any(own is atom for own in self.constants.values()):
            return EQUAL
        return frozenset(self.axes)

    def is_current(self, tracer: views.AnyTracer) -> bool:
        """Whether this is the innermost trace.

        Raises:
            EscapedTracerError: the trace of the tracer is over.
        """
        trace = innermost.trace
        if trace is self:
            return True
        if trace is None:
            raise errors.EscapedTracerError(tracer)
        trace.read(tracer)  # raises if the tracer has escaped
        return False

    def close(self, results: Sequence[Any]) -> Region:
        """The finished region. Captures follow the parameters, in order of first use."""
        atoms = tuple(map(self.read, results))
        params = (*self.params, *self.captures.values(), *self.constants.values())
        return Region(params, tuple(self.eqns), atoms)


def current_trace() -> Trace | None:
    """The innermost trace in progress in this thread; None if there is none."""
    return innermost.trace


class Active:
    """A context manager that makes a trace current, and restores the one before at its end."""

    __slots__ = ("_around", "_trace")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __enter__(self) -> None:
        self._around, innermost.trace = innermost.trace, self._trace
        if self._around is None:
            outermost.add(self._trace)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        innermost.trace = self._around
        if self._around is None:
            outermost.discard(self._trace)
        if isinstance(error, ValueError):
            hidden = error.__cause__
            if isinstance(hidden, errors.TracerMisuseError) and _is_of_numpy(error):
                raise hidden from None  # NumPy hides it when `array[i] = tracer` fails
        elif isinstance(error, TypeError):
            dropped = self._trace.index_error
            if dropped is not None and "integer, got 'Tracer<" in str(error):
                # NumPy drops it when `numpy.zeros(tracer)` fails
                raise dropped.with_traceback(error.__traceback__) from None


def _is_of_numpy(error: ValueError) -> bool:
    return str(error).startswith("setting an array element with a sequence")


def recorder(args: Sequence[Any]) -> Trace | None:
    """The trace that an op with these arguments records into, or None if it runs now.

    Ops without operands record whenever a trace is in progress.

    Raises:
        EscapedTracerError: a tracer, but no trace is in progress.
    """
    trace = innermost.trace
    for arg in args:
        if isinstance(arg, (Tracer, Selected)):
            if trace is None:
                raise errors.EscapedTracerError(arg)
            return trace
    return None if args else trace


def bind(trace: Trace, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Record `op` on arguments: casts by its promotion rule, then the equation.

    The equation keeps `attrs`: the caller gives the dict away.
    """
    try:  # most are this trace's own, and read without a call
        atoms = tuple(
            [x.atom if type(x) is Tracer and x.owner is trace else trace.read(x) for x in args]
        )
    except OverflowError:
        atoms = tuple(map(trace.read, _without_huge_ints(op, args, attrs)))
    dtypes, types = op.application(tuple(map(_type, atoms)), attrs)
    if dtypes:
        atoms = tuple([cast(trace, a, d) for a, d in zip(atoms, dtypes, strict=True)])
    outputs = (Value(types[0]),) if len(types) == 1 else tuple(map(Value, types))
    # this package's frames: this one, `eager.apply`, and its caller
    source = trace.source or user_source(3)
    hints = _in_order(op, NO_HINTS) if is_deterministic() else NO_HINTS
    trace.eqns.append(Eqn(op, atoms, outputs, attrs or NO_ATTRS, (), source, hints))
    if len(outputs) != 1:
        return tuple([Tracer(trace, value) for value in outputs])
    result = Tracer(trace, outputs[0])
    if op.is_view and isinstance(args[0], Tracer):
        return views.attach(result, args[0])
    if trace.uses.transposes:
        set_order(result, result_order(op, args, attrs, result.shape))
    return result


_type = attrgetter("type")


def _without_huge_ints(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> list[Any]:
    """The arguments with Python ints beyond 64 bits as floats, where the op casts them to floats.

    Raises:
        IntegerRangeError: the op takes such an int as an integer.
    """
    huge = [type(x) is int and not -(2**63) <= x < 2**64 for x in args]
    types = [type_of(0 if h else x) for x, h in zip(args, huge, strict=True)]
    dtypes = [t.dtype for t in types] if op.promote is None else op.promote(*types, **attrs)
    found = list(args)
    for i, dtype in enumerate(dtypes):
        if not huge[i]:
            continue
        if dtype.kind in "iub":
            raise errors.IntegerRangeError(found[i])
        try:
            found[i] = float(found[i])
        except OverflowError:
            raise errors.IntegerRangeError(found[i], dtype) from None
    return found


def cast(trace: Trace, atom: Atom, dtype: np.dtype[Any]) -> Atom:
    """An operand cast to another dtype, and as weak as before; a literal is converted now.

    Raises:
        IntegerRangeError: the literal is a Python int that does not fit the dtype.
    """
    if atom.type.dtype == dtype:
        return atom
    if isinstance(atom, Literal):
        value = atom.value.item() if atom.type.weak else atom.value
        type_ = scalar_type(dtype, atom.type.weak)
        try:
            if dtype.kind in "fcV":
                with np.errstate(over="ignore"):
                    return Literal.of(value, type_)
            return Literal.of(value, type_)
        except OverflowError:
            raise errors.IntegerRangeError(value, dtype) from None
    attrs = {"dtype": dtype, "weak": True} if atom.type.weak else {"dtype": dtype}
    (tracer,) = trace.record(get("cast"), [atom], attrs)
    return tracer.atom


def trace_region(
    fun: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    parent: Trace,
    origin: Callable[[int], str] | None = None,
    varying: Sequence[Axes] = (),
    axes: Mapping[str, int] | None = None,
) -> tuple[Region, tuple[Atom, ...], tuple[Value, Atom] | None]:
    """Trace `fun(*tracers)`, which returns a flat sequence, as a region inside `parent`.

    Returns the region; its captures, which are atoms of the parent's region, one for each trailing
    parameter; and if it has effects, the token that it takes and the one that it yields. These are
    not yet among the region's parameters and results. `origin` names a parameter in messages, by
    its number. `varying` are the axes of devices over which parameters vary, if that is known, and
    `axes` those that get a name inside.
    """
    inner = Trace(parent)
    if axes:
        inner.axes = {**inner.axes, **axes}
    with Active(inner):
        origins = [None if origin is None else partial(origin, i) for i in range(len(types))]
        sets: Sequence[frozenset[str] | None] = varying or [None] * len(types)
        parameters = zip(types, origins, sets, strict=True)
        results = fun(*[inner.param(t, o, v) for t, o, v in parameters])
        region = inner.close(results)
    if inner.first_token is None or inner.last_token is None:
        return region, tuple(inner.captures), None
    return region, tuple(inner.captures), (inner.first_token, inner.last_token.atom)


@calls_traced
def trace_program(
    fun: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    name: str,
    paths: Callable[[], Sequence[str]] | None = None,
    device: str = "host",
    varying: Sequence[Axes] = (),
    axes: Mapping[str, int] | None = None,
) -> Program:
    """Trace `fun(*tracers)`, which returns a flat sequence, as a whole program for a device.

    `paths` has the Python expressions of the inputs (`state['v'][1]`), which are asked for when one
    is named: in a message, or in the text of the program. A program of each device of a mesh has
    `axes` with names, and inputs that vary over those in `varying`.
    """
    trace = Trace(None, device)
    trace.axes = axes or {}
    sets: Sequence[Axes | None] = varying or [None] * len(types)

    def argument(number: int) -> str:
        return f"argument {number if paths is None else paths()[number]}"

    with Active(trace):
        parameters = enumerate(zip(types, sets, strict=True))
        results = fun(*[trace.param(t, partial(argument, i), v) for i, (t, v) in parameters])
        token = () if trace.last_token is None else (trace.last_token,)
        region = trace.close((*results, *token))
    constants = tuple([np.ndarray(t.shape, t.dtype, data) for t, data in trace.constants])
    return Program(name, region, constants, bool(token), paths or no_paths)


def _in_order(op: Op, hints: Hints) -> Hints:
    """The hints of an equation in a `deterministic` block."""
    combines = isinstance(op.form, Scatter) and op.form.combiner is not None
    return IN_ORDER if combines else hints
