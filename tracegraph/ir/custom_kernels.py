"""Kernels that users declare: code, types, launch, NumPy reference.

An operand is an array; a scalar is passed by value, and is part of the call. The kernel gets its
arguments in the order of the reference's parameters, then a pointer to each output. An output that
is written over an argument has no pointer of its own: it is that argument's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import lru_cache, wraps
from typing import Any, ClassVar, Literal

import numpy as np

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType


def made_once(make: Callable[..., CustomKernel]) -> Callable[..., CustomKernel]:
    """A function that makes kernels: one for equal arguments, and each knows how it was made."""

    @wraps(make)
    def known(*args: Any) -> CustomKernel:
        return made(*args)

    @lru_cache(maxsize=256)
    def made(*args: Any) -> CustomKernel:
        return replace(make(*args), made_by=(known, args))

    return known


Launching = Any
"""A number or a tuple of up to three; or a function of the arguments' types that returns one."""


_WITHOUT_DERIVATIVE = (
    '{{}} was declared without derivative=; give derivative="reference", which differentiates {}, '
    "or a function (primals, tangents) -> tangents of the outputs"
)


@dataclass(frozen=True, slots=True)
class CudaText:
    """CUDA C++ of a unit of its own: a function `entry`, and folders of the headers it includes.

    It `waits` if it may start while the kernels before it run, and waits for their end itself.
    """

    noun: ClassVar[str] = "kernel"
    without_derivative: ClassVar[str] = _WITHOUT_DERIVATIVE.format("its NumPy reference")

    text: str | Callable[..., str]
    entry: str
    include_paths: tuple[str, ...] = ()
    waits: bool = False


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


@dataclass(frozen=True, slots=True, eq=False)
class WarpFunction:
    """What a kernel of tracegraph's own is where it is a part of a loop in one kernel: device code
    that warps run, without barriers of a block.

    Args:
        name: of the function. It takes the number of a part, then what the kernel takes, arrays as
            pointers to void.
        definition: its C++ text, with all that it needs.
        parts: how many there are, by the types of the arguments.
        time: of a part, in µs, likewise.
    """

    name: str
    definition: str
    parts: Callable[..., int]
    time: Callable[..., float]


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
        warp_function: the same as a part of another kernel, if it can be that.
        made_by: of a kernel that is known by data, as those of tracegraph's own are, the function
            and the arguments that make it.
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
    warp_function: WarpFunction | None = None
    made_by: tuple[Callable[..., CustomKernel], tuple[Any, ...]] | None = None

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
