"""tracegraph.kernel: a CUDA kernel of the user's as a function of arrays."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph import errors
from tracegraph.arrays.eager import apply
from tracegraph.custom.options import (
    Batching,
    Derivative,
    checked_batching,
    checked_derivative,
)
from tracegraph.dtypes import SHORT_NAMES, canonical_dtype
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.ir.custom_kernels import CompiledKernel, CudaText, CustomKernel
from tracegraph.ir.kernel_calls import SCALAR_DTYPES, KernelCall, Scalar
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.tracing.tracer import Tracer

__all__ = ["kernel"]

Types = Callable[..., Any]

_PLAIN = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class DeclaredKernel:
    """A kernel that `tracegraph.kernel` declared: called, it computes; traced, it is a node.

    `reference` is the NumPy function that it decorates.
    """

    def __init__(self, declared: CustomKernel) -> None:
        self.declared = declared
        self.reference = declared.reference
        self._signature = inspect.signature(declared.reference)
        update_wrapper(self, declared.reference, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs for arrays and scalars.

        Raises:
            CustomKernelError: the arguments do not fit the declaration.
            KernelResultError: without a GPU, the reference returned other types than declared.
        """
        try:
            call, operands, types = self._bound(args, kwargs)
            launch = call.launch(types)
            found = apply(custom_kernel, *operands, call=call)
        except BaseException as error:
            hide_frames(error)
            raise
        return (found,) if len(launch.out_types) == 1 and not launch.single else found

    def _bound(self, args: Any, kwargs: Any) -> tuple[KernelCall, list[Any], list[ArrayType]]:
        kernel = self.declared
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise kernel.error(f"{error}; it takes ({', '.join(kernel.parameters)})") from None
        bound.apply_defaults()
        scalars, operands, types = [], list[Any](), list[ArrayType]()
        for name, value in bound.arguments.items():
            if name in kernel.scalars:
                scalars.append(self._scalar(name, value))
                continue
            try:
                operands.append(as_array(value))
                types.append(type_of(operands[-1]))
            except TypeError as error:
                raise kernel.error(f"argument {name}: {error}") from None
        return KernelCall(kernel, tuple(scalars)), operands, types

    def _scalar(self, name: str, value: Any) -> Scalar:
        kernel, dtype = self.declared, self.declared.scalars[name]
        if isinstance(value, Tracer):
            raise kernel.error(
                f"{name} is passed by value, so that it has to be known when the function is "
                f"traced; got {errors.value_text(value)}",
                f"take {name} out of scalars: the kernel then gets a pointer to an array of one "
                "element; or make it a static argument",
            )
        if np.ndim(value) or not isinstance(value, (bool, int, float, np.generic, np.ndarray)):
            raise kernel.error(f"{name} must be a number, not {errors.value_text(value)}")
        try:
            found = Scalar.of(value, dtype)
            kept = found.value == value or value != value or dtype.kind in "fV"
        except (OverflowError, ValueError, TypeError):
            kept = False
        if not kept:
            raise kernel.error(f"{name} is a {SHORT_NAMES[dtype]}, which cannot hold {value!r}")
        return found

    def __repr__(self) -> str:
        return f"<kernel {self.declared.where}>"


@entry_point
def kernel(
    compiled: Any = None,
    *,
    source: str | Callable[..., str] | None = None,
    entry: str | None = None,
    out: Types | ArrayType | tuple[ArrayType, ...],
    grid: Any,
    block: Any,
    scalars: Mapping[str, DTypeLike] | None = None,
    aliases: Mapping[int, str | int] | None = None,
    shared_memory: Any = 0,
    cluster: Any = None,
    cooperative: bool = False,
    include_paths: Iterable[str | os.PathLike[str]] = (),
    batching: Batching | None = None,
    derivative: Derivative | None = None,
) -> Callable[[Callable[..., Any]], DeclaredKernel]:
    """Declare a CUDA kernel, by a decorator of its NumPy reference.

    Called with arrays in host memory it is the reference. In a traced function it is a kernel node
    of the graph, wherever it is called; on the host the reference runs in its place.

    The kernel gets its arguments in the order of the reference's parameters: for an array a pointer
    to its elements, contiguous and row-major, traced scalars included; for those in `scalars` the
    value. A pointer for each output follows, but for those that `aliases` names. Elements of the
    arguments must not be written, but for aliased ones. Outputs have no defined values before.

    Args:
        compiled: a compiled kernel, such as a ``cuda.core.Kernel``, in place of `source`. The graph
            keeps it alive.
        source: CUDA C++ with an ``extern "C" __global__`` function; or a function of the
            arguments' types that returns it. It is a unit of its own: names clash with no others.
        entry: the name of that function; by default the reference's.
        out: the type of the output, or a tuple of types; or a function that returns it. As all such
            functions here, it takes what the reference takes: for arrays their `ArrayType`, for
            scalars the value.
        grid: the blocks, one to three extents; or a function.
        block: the threads of a block, likewise.
        scalars: the dtypes of the parameters that are passed by value. They are numbers that are
            known when the function is traced.
        aliases: outputs by number that are written over an argument, by its name or position. The
            kernel updates what the argument's pointer points to; the value before stays intact
            elsewhere if it is still needed, by a copy.
        shared_memory: bytes of dynamic shared memory, or a function.
        cluster: the blocks of a cluster, one to three extents, or a function.
        cooperative: whether all blocks have to be resident at once, as synchronizing them needs.
        include_paths: folders of headers. With one, code is compiled anew in each process.
        batching: what `vmap` does. ``"sequential"``: a loop of calls. A function:
            ``batching(lanes, batched, *arguments)`` gets the number of lanes, a bool for each
            array, and all arguments, in which batched arrays have the lanes along axis 0; it
            returns the outputs with the lanes along axis 0.
        derivative: how it is differentiated, forwards and backwards. ``"reference"``: as the
            reference is, which is traced for that. A function: ``derivative(primals, tangents)``
            gets two tuples with an entry for each parameter, as a rule of `custom_jvp`, and returns
            the tangent of the output, or a tuple of them; it is traced, and must be linear in the
            tangents. Scalars and integers have None for a tangent, and None returned is zero. The
            outputs themselves are always the kernel's.

    Raises:
        CustomKernelError: the declaration cannot work.
        ParametersError: `derivative` is a function of other parameters.

    >>> import numpy as np
    >>> import tracegraph
    >>> @tracegraph.kernel(
    ...     source='''
    ...     extern "C" __global__ void scaled(const double* x, double factor, int n, double* y) {
    ...       int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...       if (i < n) y[i] = factor * x[i];
    ...     }''',
    ...     out=lambda x, factor, n: x,
    ...     grid=lambda x, factor, n: -(-n // 256),
    ...     block=256,
    ...     scalars={"factor": "float64", "n": "int32"},
    ... )
    ... def scaled(x, factor, n):
    ...     return factor * x
    >>> scaled(np.arange(3.0), 2.0, 3)
    array([0., 2., 4.])
    """

    def decorate(reference: Callable[..., Any]) -> DeclaredKernel:
        declared = _Declaration(reference)
        chosen = entry if entry is not None else declared.name
        folders = tuple([os.fspath(path) for path in include_paths])
        code = declared.code(compiled, source, chosen, folders)
        dtypes = declared.scalars(scalars or {})
        operands = [name for name in declared.parameters if name not in dtypes]
        return DeclaredKernel(
            CustomKernel(
                name=declared.name,
                where=declared.where,
                reference=reference,
                parameters=declared.parameters,
                scalars=dtypes,
                code=code,
                out=out if callable(out) else lambda *_: out,
                grid=grid,
                block=block,
                shared_bytes=shared_memory,
                cluster=cluster,
                cooperative=required_bool("cooperative", cooperative),
                aliases=declared.aliases(aliases or {}, operands),
                batching=checked_batching(batching, declared.error),
                derivative=checked_derivative(
                    derivative, ("primals", "tangents"), f"kernel {declared.where}", declared.error
                ),
            )
        )

    return decorate


class _Declaration:
    """Checks what is declared of a reference."""

    def __init__(self, reference: Callable[..., Any]) -> None:
        if not callable(reference):
            raise errors.CustomKernelError(
                "tracegraph.kernel",
                f"decorates a function of NumPy arrays, not {errors.value_text(reference)}",
            )
        self.name = getattr(reference, "__name__", type(reference).__name__)
        self.where = errors.function_text(reference)
        given = inspect.signature(reference).parameters.values()
        varying = [str(each) for each in given if each.kind not in _PLAIN]
        if varying:
            raise self.error(
                f"its reference takes {', '.join(varying)}; a kernel has positional parameters only"
            )
        self.parameters = tuple([each.name for each in given])

    def error(self, problem: str) -> errors.CustomKernelError:
        return errors.CustomKernelError(f"kernel {self.where}", problem)

    def code(
        self, compiled: Any, source: Any, entry: str, folders: tuple[str, ...]
    ) -> CudaText | CompiledKernel:
        if (compiled is None) == (source is None):
            raise self.error("give either source= or a compiled kernel")
        if source is not None:
            if not isinstance(source, str) and not callable(source):
                raise self.error(f"source must be text, not {errors.value_text(source)}")
            if not entry.isidentifier() or not entry.isascii():
                raise self.error(
                    f"entry= must be the name of the function in the text, not {entry!r}; without "
                    "it, it is the name of the reference"
                )
            return CudaText(source, entry, folders)
        if not hasattr(compiled, "handle"):
            raise self.error(
                f"got {errors.value_text(compiled)} as a compiled kernel; give a cuda.core.Kernel, "
                "or text as source="
            )
        return CompiledKernel(compiled)

    def scalars(self, given: Mapping[str, DTypeLike]) -> dict[str, np.dtype[Any]]:
        found = {}
        for name, dtype in given.items():
            if name not in self.parameters:
                raise self.error(f"scalars has {name!r}, which is none of {self.parameters}")
            found[name] = canonical_dtype(dtype)
            if found[name] not in SCALAR_DTYPES:
                raise self.error(f"{name} cannot be passed by value as {dtype}; pass an array")
        return found

    def aliases(self, given: Mapping[int, str | int], operands: list[str]) -> dict[int, int]:
        found: dict[int, int] = {}
        for output, of in given.items():
            name = of
            if isinstance(of, int) and 0 <= of < len(self.parameters):
                name = self.parameters[of]
            if name not in operands or not isinstance(output, int) or output < 0:
                raise self.error(
                    f"aliases={dict(given)} must map numbers of outputs to arrays among the "
                    f"parameters: {', '.join(operands)}"
                )
            operand = operands.index(str(name))
            if operand in found.values():
                raise self.error(f"aliases writes two outputs over {name}")
            found[output] = operand
        return found
