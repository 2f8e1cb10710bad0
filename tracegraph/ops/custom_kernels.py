"""Kernels that users write: an op whose attribute is the call of a kernel; graphs as effects.

    CustomKernel   what `tracegraph.kernel` declares: code, types, launch, NumPy reference
    KernelCall     a kernel with the values of its scalars: all that is static in a call
    KernelLaunch   what a call launches for operands of some types

An operand is an array; a scalar is passed by value, and is part of the call. The kernel gets its
arguments in the order of the reference's parameters, then a pointer to each output. An output that
is written over an argument has no pointer of its own: it is that argument's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from tracegraph import errors
from tracegraph.dtypes import SHORT_NAMES, type_text
from tracegraph.ir.derivative import Constant, Jvp, NoDerivativeError, Reference, UserRule
from tracegraph.ir.effects import TOKEN
from tracegraph.ir.op import Effect, Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType, type_of

Extents = tuple[int, int, int]
Launching = Any
"""A number or a tuple of up to three; or a function of the arguments' types that returns one."""

MOST_THREADS = 1024
"""Threads of a block, on every architecture."""

_GRID_LIMITS = (2**31 - 1, 2**16 - 1, 2**16 - 1)
_BLOCK_LIMITS = (1024, 1024, 64)


_WITHOUT_DERIVATIVE = (
    '{{}} was declared without derivative=; give derivative="reference", which differentiates {}, '
    "or a function (primals, tangents) -> tangents of the outputs"
)


@dataclass(frozen=True, slots=True)
class CudaText:
    """CUDA C++ of a unit of its own: a function `entry`, and folders of the headers it includes."""

    noun: ClassVar[str] = "kernel"
    without_derivative: ClassVar[str] = _WITHOUT_DERIVATIVE.format("its NumPy reference")

    text: str | Callable[..., str]
    entry: str
    include_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CompiledKernel:
    """A compiled kernel, such as a ``cuda.core.Kernel``: any object with its `handle`."""

    noun: ClassVar[str] = "kernel"
    without_derivative: ClassVar[str] = _WITHOUT_DERIVATIVE.format("its NumPy reference")

    kernel: Any


@dataclass(frozen=True, slots=True, eq=False)
class CapturedFunction:
    """In place of a kernel: ``function(stream, *inputs, *outputs)``, which enqueues work."""

    noun: ClassVar[str] = "captured call"
    without_derivative: ClassVar[str] = _WITHOUT_DERIVATIVE.format("its host= function")

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class ForeignMemory:
    """A contiguous array at a fixed address, which `owner` keeps; without one, on the host only."""

    type: ArrayType
    address: int | None
    owner: Any


@dataclass(frozen=True, slots=True, eq=False)
class ForeignGraph:
    """In place of a kernel: somebody's graph by handle, which `owner` keeps, and its memory."""

    noun: ClassVar[str] = "embedded graph"
    without_derivative: ClassVar[str] = (
        "{} has no derivative; call it in a function with a rule of its own, by custom_jvp or "
        "custom_vjp"
    )

    handle: int
    owner: Any
    inputs: tuple[ForeignMemory, ...]
    outputs: tuple[ForeignMemory, ...]


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """What a call launches: the types of its outputs, blocks, threads of a block, shared bytes.

    `single` says whether the call returns its only output as it is, not in a tuple. `text` is the
    unit of a kernel that is compiled from source.
    """

    out_types: tuple[ArrayType, ...]
    single: bool
    grid: Extents
    block: Extents
    shared_bytes: int
    cluster: Extents | None
    cooperative: bool
    text: str

    def tangents(self, label: str, rule: Callable[..., Any], returned: Any) -> Sequence[Any]:
        """What a rule returned for each output.

        Raises:
            CustomRuleError: it is not a tangent for each, in a tuple if the outputs are.
        """
        count = len(self.out_types)
        if returned is None:
            return [None] * count
        listed = isinstance(returned, (tuple, list))
        if self.single and not listed:
            return [returned]
        if not self.single and listed and len(returned) == count:
            return tuple(returned)
        needed = f"a tuple with a tangent for each output, {count} in all"
        got = f"one of {len(returned)}" if listed else errors.value_text(returned)
        raise errors.CustomRuleError(
            label,
            f"{errors.function_text(rule)} must return "
            f"{'the tangent of its output' if self.single else needed}, not "
            f"{f'a tuple of {len(returned)}' if self.single else got}; None stands for zero",
        )


@dataclass(frozen=True, slots=True, eq=False)
class CustomKernel:
    """A kernel that a user declared, compared by identity.

    Args:
        name: that of the reference.
        where: the name with its place, for messages.
        reference: the same computation with NumPy arrays.
        parameters: the names of the reference's parameters.
        code: what runs on a GPU.
        out: gives the types of the outputs, by those of the arguments.
        batching: how `vmap` applies it: a rule, ``"sequential"`` or None.
        derivative: how it is differentiated: a rule for tangents, ``"reference"`` or None.
        scalars: the dtypes of those that are passed by value.
        grid, block, shared_bytes, cluster: extents, or functions as `out` is.
        cooperative: whether all blocks have to be resident at the same time.
        aliases: for outputs that are written over an operand, the number of that operand.
        purpose: what a kernel of tracegraph's own does for the user's line; "" for those of users.
    """

    name: str
    where: str
    reference: Callable[..., Any]
    parameters: tuple[str, ...]
    code: CudaText | CompiledKernel | CapturedFunction | ForeignGraph
    out: Callable[..., Any]
    batching: Callable[..., Any] | Literal["sequential"] | None
    derivative: Callable[..., Any] | Literal["reference"] | None = None
    scalars: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    grid: Launching = 1
    block: Launching = 1
    shared_bytes: Launching = 0
    cluster: Launching = None
    cooperative: bool = False
    aliases: Mapping[int, int] = field(default_factory=dict)
    purpose: str = ""

    @property
    def operands(self) -> tuple[str, ...]:
        """The parameters that are arrays."""
        return tuple([name for name in self.parameters if name not in self.scalars])

    def error(self, problem: str, *details: str) -> errors.CustomKernelError:
        """An error about it."""
        return errors.CustomKernelError(self.label, problem, *details)

    @property
    def label(self) -> str:
        """What messages call it."""
        return f"{self.code.noun} {self.where}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value with its dtype, equal to those of the same bits."""

    dtype: np.dtype[Any]
    bits: bytes

    @classmethod
    def of(cls, value: Any, dtype: np.dtype[Any]) -> Scalar:
        """A number in a dtype, converted as NumPy converts an element that is assigned."""
        return cls(dtype, np.array(value, dtype).tobytes())

    @property
    def value(self) -> Any:
        """The NumPy scalar."""
        return np.frombuffer(self.bits, self.dtype)[0]

    @property
    def word(self) -> int:
        """Its bytes as the least significant ones of an integer."""
        return int.from_bytes(self.bits, "little")

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel with the values of its scalars, in the order of its parameters."""

    kernel: CustomKernel
    scalars: tuple[Scalar, ...] = ()

    def __str__(self) -> str:
        names = [name for name in self.kernel.parameters if name in self.kernel.scalars]
        pairs = zip(names, self.scalars, strict=True)
        values = ", ".join(f"{name}={scalar}" for name, scalar in pairs)
        return f"{self.kernel.name}({values})" if values else self.kernel.name

    def arguments(self, operands: Sequence[Any], scalars: Sequence[Any] | None = None) -> list[Any]:
        """One for each parameter: operands, and scalars, by default as NumPy has them."""
        given = [each.value for each in self.scalars] if scalars is None else scalars
        arrays, values, names = iter(operands), iter(given), self.kernel.scalars
        return [next(values if name in names else arrays) for name in self.kernel.parameters]

    def launch(self, types: Sequence[ArrayType]) -> KernelLaunch:
        """What it launches for operands of these types.

        Raises:
            CustomKernelError: a declared extent, type or alias cannot be.
        """
        kernel = self.kernel
        given = self.arguments([type_.strong() for type_ in types])
        out_types, single = _out_types(kernel, given)
        for output, operand in kernel.aliases.items():
            self._require_alias(output, operand, types, out_types)
        grid = _extents(kernel, "grid", kernel.grid, given, _GRID_LIMITS)
        block = _extents(kernel, "block", kernel.block, given, _BLOCK_LIMITS)
        if prod(block) > MOST_THREADS or prod(block) == 0:
            raise kernel.error(
                f"block={block} has {prod(block)} threads; a block has 1 to {MOST_THREADS}"
            )
        if prod(grid) == 0 and any(type_.size for type_ in out_types):
            written = ", ".join(map(str, out_types))
            raise kernel.error(f"grid={grid} has no blocks, which cannot write {written}")
        cluster = None
        if kernel.cluster is not None:
            cluster = _extents(kernel, "cluster", kernel.cluster, given, _GRID_LIMITS)
            if prod(cluster) == 0 or any(g % c for g, c in zip(grid, cluster, strict=True)):
                raise kernel.error(f"grid={grid} is not made of whole clusters of {cluster}")
        shared = _called(kernel.shared_bytes, given)
        return KernelLaunch(
            out_types,
            single,
            grid,
            block,
            _integer(kernel, "shared_memory", shared),
            cluster,
            kernel.cooperative,
            self._text(given),
        )

    def _text(self, given: Sequence[Any]) -> str:
        code = self.kernel.code
        if not isinstance(code, CudaText):
            return ""
        text = _called(code.text, given)
        if not isinstance(text, str):
            got = errors.value_text(text)
            raise self.kernel.error(
                f"source must be text, or a function that returns it, not {got}"
            )
        return text

    def _require_alias(
        self,
        output: int,
        operand: int,
        types: Sequence[ArrayType],
        out_types: Sequence[ArrayType],
    ) -> None:
        name = self.kernel.operands[operand]
        if output >= len(out_types):
            raise self.kernel.error(f"aliases has output {output}; it has {len(out_types)}")
        if out_types[output] != types[operand].strong():
            raise self.kernel.error(
                f"output {output} is {out_types[output]}, which cannot be written over {name}, "
                f"{types[operand]}; aliased arrays have one type"
            )

    def writer(self, count: int) -> Callable[..., None]:
        """A function of `count` operands and the outputs as NumPy arrays, which writes to these
        what `run` returns.
        """

        def write(*arrays: np.ndarray[Any, Any]) -> None:
            for out, value in zip(arrays[count:], self.run(*arrays[:count]), strict=True):
                out[...] = value

        return write

    def run(self, *operands: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """The outputs of the reference for NumPy arrays, which it cannot change.

        Operands that an output is written over are copies, which it may.

        Raises:
            KernelResultError: it returned other types than those declared.
        """
        kernel = self.kernel
        arrays = [np.asarray(operand) for operand in operands]
        types = [ArrayType(array.dtype, array.shape) for array in arrays]
        launch = self.launch(types)
        replaced = set(kernel.aliases.values())
        given = [
            np.array(array) if number in replaced else _read_only(array)
            for number, array in enumerate(arrays)
        ]
        returned = kernel.reference(*self.arguments(given))
        return self._checked(returned, launch)

    def traced(self, *operands: Any) -> tuple[Any, ...]:
        """The outputs of the reference for traced values, which it may write to as in `run`.

        Raises:
            KernelResultError: it returned others.
        """
        launch = self.launch(list(map(type_of, operands)))
        replaced = set(self.kernel.aliases.values())
        given = [x.copy() if number in replaced else x for number, x in enumerate(operands)]
        return self._checked(self.kernel.reference(*self.arguments(given)), launch, _as_it_is)

    def _checked(
        self, returned: Any, launch: KernelLaunch, array: Callable[[Any], Any] = np.asarray
    ) -> tuple[Any, ...]:
        label, wanted = self.kernel.label, launch.out_types
        found = (returned,) if launch.single else returned
        if launch.single and isinstance(returned, tuple):
            row = ("results", "one array", f"a tuple of {len(returned)}")
            raise errors.KernelResultError(label, [row])
        if not isinstance(found, (tuple, list)) or len(found) != len(wanted):
            got = f"{len(found)} results" if isinstance(found, (tuple, list)) else "one value"
            row = ("results", f"a tuple of {len(wanted)}", got)
            raise errors.KernelResultError(label, [row])
        arrays = tuple(map(array, found))
        rows = [
            (f"output {number}", str(type_), type_text(array.dtype, array.shape))
            for number, (array, type_) in enumerate(zip(arrays, wanted, strict=True))
            if (array.dtype, array.shape) != (type_.dtype, type_.shape)
        ]
        if rows:
            raise errors.KernelResultError(label, rows)
        return arrays


def _as_it_is(x: Any) -> Any:
    """A traced value or an array; what is neither becomes an array."""
    return x if hasattr(x, "dtype") else np.asarray(x)


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _called(value: Any, given: Sequence[Any]) -> Any:
    """A declared value, or what a function gives for the arguments."""
    return value(*given) if callable(value) else value


def _out_types(kernel: CustomKernel, given: Sequence[Any]) -> tuple[tuple[ArrayType, ...], bool]:
    """The types of the outputs, and whether there is but one that is in no tuple."""
    found = _called(kernel.out, given)
    single = isinstance(found, ArrayType)
    types = (found,) if single else found
    if not isinstance(types, (tuple, list)) or not types:
        raise kernel.error(
            f"out must give an ArrayType or a tuple of them, not {errors.value_text(found)}"
        )
    for type_ in types:
        if not isinstance(type_, ArrayType):
            raise kernel.error(f"out must give ArrayTypes, not {errors.value_text(type_)}")
    return tuple([type_.strong() for type_ in types]), single


def _extents(
    kernel: CustomKernel, what: str, declared: Any, given: Sequence[Any], limits: Extents
) -> Extents:
    """Three extents of a grid, a block or a cluster; those left out are 1."""
    found = _called(declared, given)
    items = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    if not 1 <= len(items) <= 3:
        raise kernel.error(f"{what}={found!r} has {len(items)} extents; give one to three")
    x, y, z = (*[_integer(kernel, what, item) for item in items], 1, 1)[:3]
    for extent, limit in zip((x, y, z), limits, strict=True):
        if extent > limit:
            raise kernel.error(f"{what}={found!r} is too large: the limits are {limits}")
    return x, y, z


def _integer(kernel: CustomKernel, what: str, value: Any) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        found = -1
    if found < 0 or isinstance(value, (bool, np.bool_)):
        raise kernel.error(
            f"{what} must be of integers of at least 0, or a function of the arguments' types that "
            f"returns them, not {errors.value_text(value)}"
        )
    return found


SCALAR_DTYPES = tuple([dtype for dtype in SHORT_NAMES if dtype.kind != "c"])
"""The dtypes of values in kernel parameters, each of eight bytes at most."""


def _type_rule(*types: ArrayType, call: KernelCall) -> tuple[ArrayType, ...]:
    return call.launch(types).out_types


def _reference(*operands: Any, call: KernelCall) -> Any:
    found = call.run(*operands)
    return found[0] if len(found) == 1 else found


def _derivative(*, call: KernelCall) -> Reference | Jvp:
    """That of the reference, or a rule for tangents, as the user chose."""
    kernel = call.kernel
    given = kernel.derivative
    if given is None:
        raise NoDerivativeError(kernel.code.without_derivative.format(kernel.label))
    if given == "reference":
        return Reference(kernel.label, kernel.reference, call.traced)

    def tangents_of(operands: Sequence[Any], tangents: Sequence[Any]) -> Sequence[Any]:
        primals = tuple(call.arguments(operands))
        directions = tuple(call.arguments(tangents, [None] * len(call.scalars)))
        launch = call.launch(list(map(type_of, operands)))
        return launch.tangents(kernel.label, given, given(primals, directions))

    return Jvp(kernel.label, given, tangents_of)


_SAMPLE = """
extern "C" __global__ void first_sums(const long long* x, int step, long long* y) {
  y[threadIdx.x] = x[threadIdx.x] + step;
}
"""


def _samples() -> list[Sample]:
    kernel = CustomKernel(
        name="first_sums",
        where="first_sums",
        reference=lambda x, step: x + step,
        parameters=("x", "step"),
        scalars={"step": np.dtype(np.int32)},
        code=CudaText(_SAMPLE, "first_sums"),
        out=lambda x, step: x,
        block=lambda x, step: x.size,
        batching="sequential",
    )
    call = KernelCall(kernel, (Scalar.of(3, np.dtype(np.int32)),))
    return [Sample((np.arange(6).reshape(2, 3),), {"call": call})]


custom_kernel = register(
    Op(
        "custom_kernel",
        "A kernel that the user wrote, with a NumPy reference.",
        _type_rule,
        _reference,
        Opaque(of_program=True),
        _samples,
        derivative=UserRule(_derivative),
    )
)


def _effect_type(token: ArrayType, *arrays: ArrayType, call: KernelCall) -> ArrayType:
    if token != TOKEN:
        raise TypeError(f"the first operand must be a token, {TOKEN}, not {token}")
    return token


def _effect(token: Any, *operands: Any, call: KernelCall) -> Any:
    call.kernel.reference(*map(_read_only, operands))
    return token


embedded_graph = register(
    Op(
        "embedded_graph",
        "Runs a graph that somebody else built, for what that does to its memory.",
        _effect_type,
        _effect,
        Effect(),
        lambda: (),
        derivative=Constant(),
    )
)
