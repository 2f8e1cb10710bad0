"""Translation units: the CUDA C++ of a Plan's kernels, and how each is launched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from hashlib import sha256

from lowering.codegen.geometry import block_threads, nest_geometry
from lowering.codegen.geometry_records import (
    ProductGeometry,
    TileGeometry,
    shared_bytes,
    workspace_bytes,
)
from lowering.codegen.kernel_code import (
    FEW_BLOCKS,
    NAME,
    KernelCode,
    declare_parameters,
    declare_shared_memory,
    function,
    named,
)
from lowering.codegen.nest_kinds import canonical
from lowering.codegen.nests import buffers_of, nest_parameters, write_nests
from lowering.codegen.node_code import NODE_CODE
from lowering.codegen.persistent.persistent_kernel import persistent_text
from lowering.codegen.persistent.surroundings import Surroundings
from lowering.codegen.rows.cluster_geometry import cluster_of, resident_blocks
from lowering.codegen.rows.column_runs import coarsened
from lowering.codegen.source_writer import SourceWriter
from lowering.codegen.units import Unit
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nests.analysis import nest_expressions
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import CallNest, Kernel, Nest, ReduceNest, RowNest, ScanNest
from lowering.plan.nests.rounding import round_up
from lowering.plan.nodes import KernelNode, Node, launched, walk
from lowering.plan.persistent_kernel import PersistentKernelNode
from lowering.plan.plan import Plan
from lowering.plan.target.hardware import ALIGNMENT
from tracegraph.ir.op import Combiner, Elementwise
from tracegraph.ir.scalar_values import Apply


def unit_source(plan: Plan) -> Unit:
    """The functions of a Plan's kernels, those of loop bodies and branches included.

    Kernels with the same text share one function. The text depends on the Plan only, so compiled
    code can be cached by it.
    """
    names: dict[str, str] = {}
    kernels: dict[Node, KernelCode] = {}
    sequences: dict[Node, tuple[KernelCode, ...]] = {}
    functions: dict[str, str] = {}
    # unrolled copies of a loop's body share kernels
    written: dict[tuple[Kernel, bool], tuple[str, KernelCode]] = {}
    top, by_table = frozenset(plan.graph.nodes), frozenset(plan.indirect)
    loops = {node.condition for node in walk(plan.graph) if isinstance(node, WhileNode)}
    surroundings: Surroundings | None = None

    def named_function(text: str, title: str) -> str:
        """The function of this text, called by it and by what the title of a node says it does."""
        if text not in names:
            names[text] = _content_name(text, title.removeprefix(f"{plan.name}_"))
            functions[names[text]] = text.replace(NAME, names[text])
        return names[text]

    for node in launched(plan.graph):
        indirect = frozenset[Buffer]() if node in top else by_table
        if isinstance(node, PersistentKernelNode):
            surroundings = surroundings or Surroundings.of(plan)
            text, code = persistent_text(node, plan.offsets, surroundings, loops, indirect)
        elif isinstance(node, KernelNode) and node not in kernels:
            key = node.kernel, bool(indirect)
            if key not in written:
                written[key] = kernel_text(node.kernel, plan.offsets, loops, indirect)
            text, code = written[key]
        else:
            known = NODE_CODE.get(type(node))
            if known is not None and known.kernels is not None:
                texts = known.kernels(node, indirect)
                codes = [
                    replace(code, name=named_function(text, node.name)) for text, code in texts
                ]
                sequences[node] = tuple(codes)
            continue
        kernels[node] = replace(code, name=named_function(text, node.name))
    return Unit(functions, kernels, sequences, tuple(_definitions(plan)))


def _definitions(plan: Plan) -> Iterator[str]:
    """What functions need that kernels apply, combine by or run by warps, each once."""
    nodes = [node for node in walk(plan.graph) if isinstance(node, KernelNode)]
    nests = dict.fromkeys(nest for node in nodes for nest in node.kernel.nests)
    applied = {e.op: None for nest in nests for e in nest_expressions(nest) if isinstance(e, Apply)}
    found = [op.form.definition for op in applied if isinstance(op.form, Elementwise)]
    found += [combiner.definition for nest in nests for combiner in _combiners(nest)]
    outside = set(launched(plan.graph))
    custom = [n for n in walk(plan.graph) if isinstance(n, CustomKernelNode) and n not in outside]
    functions = [node.call.kernel.warp_function for node in custom]
    found += [function.definition for function in functions if function is not None]
    yield from filter(None, dict.fromkeys(found))


def _combiners(nest: Nest) -> list[Combiner]:
    """What a reduction, rows or a scan fold by."""
    match nest:
        case ReduceNest(accumulators=accumulators):
            return [accumulator.combiner for accumulator in accumulators]
        case RowNest(passes=passes):
            return [accumulator.combiner for one in passes for accumulator in one.accumulators]
        case ScanNest(combiner=combiner):
            return [combiner]
    return []


def kernel_text(
    kernel: Kernel,
    offsets: Mapping[Buffer, int],
    loops: Set[int],
    indirect: Set[Buffer] = frozenset(),
) -> tuple[str, KernelCode]:
    """The function of a kernel, called `NAME`, and how it is launched.

    `offsets` places scratch buffers. A buffer that is only read gets `__restrict__` unless it
    overlaps one that is written. `loops` are the conditions of while nodes. The addresses of
    `indirect` buffers are read from the pointer table.
    """
    nests = tuple(coarsened(canonical(nest)) for nest in kernel.nests)
    cluster = max(map(cluster_of, nests), default=1)
    if cluster > 1:  # clustered nests first, so that each begins at a cluster
        nests = tuple(sorted(nests, key=lambda nest: cluster_of(nest) == 1))
    threads = block_threads(nests)
    geometries = [nest_geometry(n, threads, cluster if cluster_of(n) > 1 else 1) for n in nests]
    read, written = buffers_of(nests)
    buffers = tuple(dict.fromkeys([*read, *written]))
    others = tuple(dict.fromkeys(p for nest in nests for p in nest_parameters(nest, loops)))
    workspace = sum(round_up(workspace_bytes(geometry), ALIGNMENT) for geometry in geometries)
    shared = max(map(shared_bytes, geometries), default=0)

    pointers = {buffer: f"p{i}" for i, buffer in enumerate(buffers)}
    writer = SourceWriter(pointers, named(others), loops)
    writer.line("const int thread = int(threadIdx.x);")
    declared, parameters = declare_parameters(
        writer, pointers, written, offsets, indirect, workspace
    )
    declare_shared_memory(writer, shared)
    blocks = write_nests(writer, nests, geometries, cluster)
    resident = resident_blocks(nests, threads, cluster)
    match geometries:
        case [TileGeometry(transpose=only)]:
            resident = only.resident
        case [ProductGeometry() as only_product]:
            resident = only_product.resident
    text = function(
        declared,
        writer.text,
        threads,
        cluster=cluster,
        resident=resident,
        # dependents that wait for a callback would take the room of what it launches
        dependents=blocks <= FEW_BLOCKS and not any(isinstance(n, CallNest) for n in nests),
    )
    grid, block = (max(blocks, 1), 1, 1), (threads, 1, 1)  # an empty grid cannot be launched
    return text, KernelCode(NAME, parameters, grid, block, shared, cluster)


def _content_name(text: str, title: str) -> str:
    """The name of a function: `tg_sin_add_1f0c52d9e8`, by its text alone, and by what it does.

    It depends on no name of the user's, nor on other kernels: so does code that is kept on disk.
    """
    words = re.sub(r"\W+", "_", re.sub(r"^k\d+(_|$)", "", title), flags=re.ASCII).strip("_")
    digest = sha256(text.encode()).hexdigest()[:10]
    return "_".join(filter(None, ("tg", words, digest)))
