"""Kernels written by hand, of users or ours: their code on a device, and how they are launched."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from lowering.codegen.custom_kernels import custom_kernel_source, declaration
from lowering.cuda.compilation.modules import Module
from lowering.cuda.interface import Driver, Launch, has_clusters
from lowering.cuda.open_devices import OpenDevice
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import launched
from lowering.plan.plan import Plan
from tracegraph.errors import KernelCompileError, KernelLaunchError
from tracegraph.generated.dataclass import dataclass
from tracegraph.user_source import lines_of


@dataclass(frozen=True, slots=True, eq=False)
class CustomCode:
    """The code of one node: the driver's kernel, and the module that it is in.

    That of a compiled kernel is the kernel itself, whose bytes are not known.
    """

    kernel: Any
    module: Module


def load_custom_kernels(plan: Plan, device: OpenDevice) -> Mapping[CustomKernelNode, CustomCode]:
    """Compile the kernels of a Plan that users wrote; nodes of the same unit share one module.

    Raises:
        KernelCompileError: one does not compile.
    """
    modules: dict[tuple[str, ...], Module] = {}
    found = {}
    for node in launched(plan.graph):
        if not isinstance(node, CustomKernelNode):
            continue
        code = node.code
        if code is None:
            compiled = node.compiled
            found[node] = CustomCode(compiled, Module(compiled, 0))
            continue
        source = custom_kernel_source(node)
        key = (source, *code.include_paths)
        if key not in modules:
            modules[key] = _module(node, source, code.include_paths, device)
        kernel = device.driver.kernel(modules[key].code, code.entry)
        found[node] = CustomCode(kernel, modules[key])
    return found


def _module(
    node: CustomKernelNode, source: str, folders: tuple[str, ...], device: OpenDevice
) -> Module:
    try:
        code = device.compile_custom(source, f"{node.name}.cu", folders)
    except RuntimeError as error:
        line = node.sources[0] if node.sources else None
        log = str(error.__cause__ or error).replace("\0", "").rstrip()
        raise KernelCompileError(
            node.call.kernel.where, device.driver.arch, log, declaration(node), line
        ) from None  # whose messages have the same log
    return Module(device.driver.load(code), device.code_bytes(code))


def custom_launch(node: CustomKernelNode, code: CustomCode, driver: Driver) -> Launch:
    """How a node is launched.

    Raises:
        KernelLaunchError: the device, or the kernel's parameters, rule it out.
    """
    declared = node.launch
    launch = Launch(
        code.kernel,
        declared.grid,
        declared.block,
        declared.shared_bytes,
        declared.cooperative,
        declared.cluster,
    )
    if declared.cluster is not None and not has_clusters(driver.arch):
        raise _refused(node, f"has clusters, which {driver.arch} lacks")
    sizes = driver.parameter_sizes(code.kernel)
    wanted = tuple([8 if isinstance(p, Buffer) else p.dtype.itemsize for p in node.parameters])
    if sizes is not None and sizes != wanted:
        raise _refused(
            node,
            f"has {len(sizes)} parameters, of {_bytes(sizes)} bytes; the call passes "
            f"{len(wanted)}, of {_bytes(wanted)}: {declaration(node)}",
        )
    if declared.cooperative:
        most = driver.resident_blocks(launch)
        if prod(declared.grid) > most:
            raise _refused(
                node,
                f"is cooperative, and has {prod(declared.grid)} blocks; {most} of "
                f"{prod(declared.block)} threads are resident at once on this device",
            )
    return launch


def _refused(node: CustomKernelNode, problem: str) -> KernelLaunchError:
    return KernelLaunchError(node.call.kernel.where, problem, lines_of(node.sources))


def _bytes(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes)) or "no"
