"""The C++ text of all kernels of a Plan: one translation unit, and how each kernel is launched."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from lowering.buffer import Buffer
from lowering.codegen.body import Body
from lowering.codegen.launch import (
    MapShape,
    ReduceShape,
    ScanShape,
    ScatterShape,
    Shape,
    block_threads,
    nest_shape,
)
from lowering.codegen.maps import write_map
from lowering.codegen.reductions import write_reduction
from lowering.codegen.scans import write_scan
from lowering.codegen.scatters import write_scatter
from lowering.kernel import Kernel, MapNest, Nest, ReduceNest, ScanNest, ScatterNest, Store
from lowering.plan import KernelNode, Plan, walk
from lowering.preamble import c_type, preamble
from tracegraph.scalar import Expr, Load, subexpressions


@dataclass(frozen=True, slots=True)
class ConditionHandle:
    """A kernel parameter: the handle of a condition, an unsigned 64-bit number."""

    condition: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """A kernel parameter: the address of memory of the node's own, 256-byte aligned.

    It is zero before the first launch, and must not be touched between launches.
    """

    nbytes: int


Parameter = Buffer | ConditionHandle | Workspace
"""What a kernel is launched with. A buffer is passed as its address."""


@dataclass(frozen=True, slots=True)
class KernelCode:
    """How a kernel node is launched: the function's name, its parameters and geometry."""

    name: str
    parameters: tuple[Parameter, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int

    @property
    def workspace_bytes(self) -> int:
        """Bytes of workspace that the node needs, 0 if none."""
        return sum(p.nbytes for p in self.parameters if isinstance(p, Workspace))


@dataclass(frozen=True, slots=True)
class Unit:
    """A translation unit and what each kernel node of the Plan launches of it."""

    source: str
    kernels: Mapping[KernelNode, KernelCode]


def unit_source(plan: Plan) -> Unit:
    """The C++ translation unit of a Plan's kernels, those of loop bodies and branches included.

    Kernels with the same text share one function. The text depends on the Plan only, so that what
    was compiled can be cached by it.
    """
    names: dict[str, str] = {}
    kernels: dict[KernelNode, KernelCode] = {}
    functions: list[str] = []
    for node in walk(plan.graph):
        if not isinstance(node, KernelNode) or node in kernels:
            continue
        text, code = kernel_text(node.kernel, plan.offsets)
        if text not in names:
            prefix = f"{plan.name}_"  # keeps clear of the functions of C++
            name = prefix + node.kernel.name.removeprefix(prefix)
            names[text] = _identifier(name, taken=names.values())
            functions.append(text.replace(NAME, names[text]))
        kernels[node] = replace(code, name=names[text])
    return Unit("\n".join([preamble(), *functions]), kernels)


NAME = "KERNEL_NAME"
"""Stands for the function's name until it is known that no other kernel has the same text."""


def kernel_text(kernel: Kernel, offsets: Mapping[Buffer, int]) -> tuple[str, KernelCode]:
    """The function of a kernel, called `NAME`, and how it is launched.

    `offsets` places scratch buffers: one that is only read, but overlaps another that is written,
    is not declared free of aliases.
    """
    threads = block_threads(kernel)
    shapes = [nest_shape(nest, threads) for nest in kernel.nests]
    read, written = _buffers(kernel)
    buffers = tuple(dict.fromkeys([*read, *written]))
    conditions = tuple(dict.fromkeys(c for nest in kernel.nests for c in _conditions(nest)))
    workspace = sum(_aligned(s.workspace_bytes) for s in shapes if isinstance(s, ReduceShape))
    shared = max(
        (s.shared_bytes for s in shapes if isinstance(s, (ReduceShape, ScanShape))), default=0
    )

    pointers = {buffer: f"p{i}" for i, buffer in enumerate(buffers)}
    handles = {condition: f"condition{i}" for i, condition in enumerate(conditions)}
    body = Body(pointers, handles)
    body.line("const int thread = int(threadIdx.x);")
    if shared:
        body.line("extern __shared__ __align__(16) unsigned char shared[];")
    blocks = _write_nests(body, kernel.nests, shapes)

    declared = [_pointer(buffer, pointers[buffer], written, offsets) for buffer in buffers] + [
        f"tg_u64 {handles[c]}" for c in conditions
    ]
    parameters: tuple[Parameter, ...] = (*buffers, *map(ConditionHandle, conditions))
    if workspace:
        declared.append("unsigned char* workspace")
        parameters = (*parameters, Workspace(workspace))
    head = f'extern "C" __global__ void __launch_bounds__({threads})'
    text = f"{head}\n{NAME}({', '.join(declared)}) {{\n{body.text}}}\n"
    grid, block = (max(blocks, 1), 1, 1), (threads, 1, 1)  # a grid of nothing cannot be launched
    return text, KernelCode(NAME, parameters, grid, block, shared)


def _write_nests(body: Body, nests: tuple[Nest, ...], shapes: list[Shape]) -> int:
    """Write each nest for its range of blocks; returns how many blocks there are."""
    busy = [(nest, shape) for nest, shape in zip(nests, shapes, strict=True) if shape.blocks]
    start = used = 0
    for position, (nest, shape) in enumerate(busy):
        stop = start + shape.blocks
        workspace = f"workspace + {used}" if used else "workspace"
        if isinstance(shape, ReduceShape):
            used += _aligned(shape.workspace_bytes)
        if len(busy) == 1:
            body.line("const int block = int(blockIdx.x);")
            _write_nest(body, nest, shape, workspace)
        else:
            last = position == len(busy) - 1
            test = "else" if last else f"if (blockIdx.x < {stop}u)"
            with body.block(test if position == 0 or last else f"else {test}"):
                body.line(f"const int block = int(blockIdx.x) - {start};")
                _write_nest(body, nest, shape, workspace)
        start = stop
    return start


def _write_nest(body: Body, nest: Nest, shape: Shape, workspace: str) -> None:
    match nest, shape:
        case MapNest(), MapShape():
            write_map(body, nest, shape)
        case ScatterNest(), ScatterShape():
            write_scatter(body, nest, shape)
        case ReduceNest(), ReduceShape():
            write_reduction(body, nest, shape, f"({workspace})")
        case ScanNest(), ScanShape():
            write_scan(body, nest, shape)


def _stores(nest: Nest) -> tuple[Store, ...]:
    return (nest.store,) if isinstance(nest, (ScanNest, ScatterNest)) else nest.stores


def _conditions(nest: Nest) -> Iterator[int]:
    if isinstance(nest, (MapNest, ReduceNest)):
        yield from (c.condition for c in nest.signals)


def _roots(nest: Nest) -> Iterator[Expr]:
    """All expressions that a nest evaluates."""
    if isinstance(nest, ReduceNest):
        yield from (a.value for a in nest.accumulators)
    for store in _stores(nest):
        yield from (*store.indices, store.value)
        if store.guard is not None:
            yield store.guard
    if isinstance(nest, (MapNest, ReduceNest)):
        yield from (c.value for c in nest.signals)


def _buffers(kernel: Kernel) -> tuple[list[Buffer], list[Buffer]]:
    """The buffers that a kernel reads and those that it writes, in order of first use."""
    read: dict[Buffer, None] = {}
    written: dict[Buffer, None] = {}
    for nest in kernel.nests:
        loads = (e for e in subexpressions(tuple(_roots(nest))) if isinstance(e, Load))
        read.update((load.buffer, None) for load in loads)
        written.update((store.buffer, None) for store in _stores(nest))
    return list(read), list(written)


def _pointer(
    buffer: Buffer, name: str, written: list[Buffer], offsets: Mapping[Buffer, int]
) -> str:
    """The declaration of a pointer; read-only memory is declared so, for the read-only cache."""
    kind = c_type(buffer.type.dtype)
    if buffer in written:
        return f"{kind}* {name}"
    if any(_overlap(buffer, other, offsets) for other in written):
        return f"const {kind}* {name}"
    return f"const {kind}* __restrict__ {name}"


def _overlap(left: Buffer, right: Buffer, offsets: Mapping[Buffer, int]) -> bool:
    if left not in offsets or right not in offsets:
        return False
    starts, sizes = (offsets[left], offsets[right]), (left.type.nbytes, right.type.nbytes)
    return starts[0] < starts[1] + sizes[1] and starts[1] < starts[0] + sizes[0]


def _identifier(text: str, taken: Collection[str]) -> str:
    """A C++ identifier that resembles a text and is not taken."""
    base = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    base = base if base and not base[0].isdigit() else f"k{base}"
    names = itertools.chain([base], (f"{base}_{n}" for n in itertools.count(2)))
    return next(name for name in names if name not in taken)


def _aligned(nbytes: int) -> int:
    return -(-nbytes // 256) * 256
