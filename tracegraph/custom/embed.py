"""tracegraph.embed: somebody's CUDA graph, as a child graph at its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from tracegraph import errors
from tracegraph.arrays.eager import apply
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.custom_kernels import CustomKernel, ForeignGraph, ForeignMemory
from tracegraph.ir.effects import require_allowed
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.op import get
from tracegraph.ir.types import ArrayType, row_major_strides, type_of
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.ops.custom_kernels import custom_kernel
from tracegraph.tracing.trace import current_trace
from tracegraph.user_source import user_source

__all__ = ["embed"]


@entry_point
def embed(
    graph: Any,
    *,
    reads: Any = (),
    at: Any = (),
    out: Any = None,
    host: Any = None,
) -> Any:
    """Run another CUDA graph here, as a child graph node; also in loops and branches.

    The graph works on memory of its own. A launch copies each of `reads` to the array in `at` that
    the graph reads, runs it, and copies what it wrote to `out`. So the memory of two embedded
    graphs may be the same: they run one after the other. On the host `host` runs.

    The graph is cloned when the graph around it is built; later changes have no effect. The clone
    and the arrays live as long as the graph around it. With `out` it is a function of `reads`, and
    is left out if its result is not used. Without `out`, it runs each time the program reaches this
    line, in the order of prints.

    Args:
        graph: a ``cuda.core.graph.GraphDefinition``, a ``cupy.cuda.Graph``, a
            ``torch.cuda.CUDAGraph`` that keeps its graph, or the handle of a ``CUgraph``, whose
            owner then has to live until the graph around it is built.
        reads: an array, or a sequence of arrays.
        at: for each of them, an array in device memory, contiguous, of the same type.
        out: an array in device memory that the graph writes, or a tuple of them. Where only the
            host runs, an `ArrayType` may stand for each array in `at` and `out`.
        host: a NumPy function of `reads` that returns the outputs.

    Raises:
        CustomKernelError: an argument is something else; or it runs on the host, without a function
            for that.
        CapturedCallError: when the graph is built: it has nodes that no child graph, or none of a
            loop or branch, may hold.
        EffectInConditionError: without `out`, it is in the condition of a loop.

    >>> import numpy as np
    >>> import tracegraph
    >>> vector = tracegraph.ArrayType("float64", (3,))
    >>> @tracegraph.jit
    ... def f(x):
    ...     return tracegraph.embed(1, reads=x, at=vector, out=vector, host=np.cumsum) + 1
    >>> f(np.ones(3))
    Array([2., 3., 4.], dtype=float64)
    """
    source = user_source()
    label = "embedded graph" if source is None else f"embedded graph at {source}"
    handle = _handle(graph, label)
    if host is not None and not callable(host):
        raise errors.CustomKernelError(
            label, f"host must be a function, not {errors.value_text(host)}"
        )
    values = [_value(value, label) for value in _several(reads)]
    inputs = [_memory(array, label, "at") for array in _several(at)]
    _require_fitting(values, inputs, label)
    _require_apart(inputs, label)
    outputs = () if out is None else tuple([_memory(o, label, "out") for o in _several(out)])
    if out is not None and not outputs:
        raise errors.CustomKernelError(label, "out is empty; leave it out if nothing is written")
    types = tuple([memory.type for memory in outputs])
    kernel = CustomKernel(
        name=getattr(graph, "name", None) or "graph",
        where="" if source is None else f"at {source}",
        reference=_missing(label) if host is None else host,
        parameters=tuple([f"x{n}" for n in range(len(values))]),
        code=ForeignGraph(handle, graph, tuple(inputs), outputs),
        out=lambda *_: types if isinstance(out, (tuple, list)) else types[0],
        batching="sequential",
    )
    call = KernelCall(kernel)
    if not outputs:
        _perform(call, values)
        return None
    results = apply(custom_kernel, *values, call=call)
    return (results,) if isinstance(out, (tuple, list)) and len(types) == 1 else results


def _perform(call: KernelCall, values: Sequence[Any]) -> None:
    """Run it for its effect."""
    require_allowed("embed")
    trace = current_trace()
    if trace is None:
        call.kernel.reference(*map(np.asarray, values))
    else:
        trace.perform(get("embedded_graph"), values, {"call": call})


def _several(given: Any) -> Sequence[Any]:
    return given if isinstance(given, (tuple, list)) else (given,)


def _missing(label: str) -> Callable[..., NoReturn]:
    def reference(*arrays: Any) -> NoReturn:
        raise errors.CustomKernelError(
            label, "runs on CUDA only; for the host, give a NumPy function of `reads` as host="
        )

    return reference


def _handle(graph: Any, label: str) -> int:
    handle = _of_library(graph, label)
    if type(handle).__name__.endswith("Exec"):
        raise errors.CustomKernelError(
            label, "an executable graph cannot be embedded: give the graph that it was made from"
        )
    try:
        number = int(handle)
    except (TypeError, ValueError):
        number = 0
    if isinstance(handle, (bool, float, str)) or number <= 0:
        raise errors.CustomKernelError(
            label,
            "graph must be a GraphDefinition of cuda.core, a graph of CuPy or PyTorch, or the "
            f"handle of a CUgraph as an int, not {errors.value_text(graph)}",
        )
    return number


def _of_library(graph: Any, label: str) -> Any:
    """The handle by the name that cuda.core, CuPy or PyTorch gives it, or what was given."""
    if hasattr(graph, "raw_cuda_graph"):
        try:
            return graph.raw_cuda_graph()
        except RuntimeError as reason:
            raise errors.CustomKernelError(
                label,
                "the torch.cuda.CUDAGraph keeps no graph: capture into CUDAGraph(keep_graph=True) "
                f"({reason})",
            ) from reason
    return getattr(graph, "handle", getattr(graph, "graph", graph))


def _value(value: Any, label: str) -> Any:
    try:
        array = as_array(value)
        type_of(array)
    except TypeError as error:
        raise errors.CustomKernelError(label, f"reads: {error}") from None
    return array


def _memory(given: Any, label: str, where: str) -> ForeignMemory:
    """Where an array of any library is in device memory."""
    if isinstance(given, ArrayType):
        return ForeignMemory(given.strong(), None, None)
    interface = getattr(given, "__cuda_array_interface__", None)
    if interface is None:
        raise errors.CustomKernelError(
            label,
            f"{where} must have arrays in device memory, with __cuda_array_interface__, not "
            f"{errors.value_text(given)}",
        )
    type_ = ArrayType(np.dtype(interface["typestr"]), tuple(interface["shape"]))
    strides, itemsize = interface.get("strides"), type_.dtype.itemsize
    dense = [itemsize * stride for stride in row_major_strides(type_.shape)]
    if strides is not None and any(
        extent > 1 and stride != wanted
        for extent, stride, wanted in zip(type_.shape, strides, dense, strict=True)
    ):
        raise errors.CustomKernelError(label, f"{where} has an array that is not contiguous")
    pointer, read_only = interface["data"]
    if read_only and where == "at":
        raise errors.CustomKernelError(label, "at has an array that is read-only")
    return ForeignMemory(type_, int(pointer), given)


def _require_fitting(values: Sequence[Any], inputs: Sequence[ForeignMemory], label: str) -> None:
    if len(values) != len(inputs):
        raise errors.CustomKernelError(
            label,
            f"reads has {len(values)} arrays and at {len(inputs)}; give for each array that the "
            "graph reads where it reads it",
        )
    for number, (value, memory) in enumerate(zip(values, inputs, strict=True)):
        type_ = type_of(value).strong()
        if type_ != memory.type:
            raise errors.CustomKernelError(
                label,
                f"reads[{number}] is {type_}, and at[{number}] {memory.type}; they must have one "
                "type",
            )


def _require_apart(inputs: Sequence[ForeignMemory], label: str) -> None:
    """Two values that are copied to one address: the graph would read one of them only."""
    known = [(memory.address, n) for n, memory in enumerate(inputs) if memory.address is not None]
    for (start, first), (following, second) in pairwise(sorted(known)):
        nbytes = inputs[first].type.nbytes
        if start + nbytes > following and inputs[second].type.nbytes:
            raise errors.CustomKernelError(
                label,
                f"at[{first}], {nbytes:,} bytes at {start:#x}, and at[{second}], "
                f"{inputs[second].type.nbytes:,} bytes at {following:#x}, overlap: one value of "
                "reads would be copied over the other; give each an array of its own, or leave "
                "out what the graph reads twice",
            )
