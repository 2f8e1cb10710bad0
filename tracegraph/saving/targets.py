"""Targets: programs of a file that are compiled for some GPUs beforehand."""

from __future__ import annotations

from dataclasses import replace

from tracegraph.generated.dataclass import dataclass
from tracegraph.saving.entries import SavedProgram, SavedTargets
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.stages import Traced


@dataclass(frozen=True, slots=True)
class TargetSizes:
    """What the target of a program has: nodes of its graph, kernels among them, bytes of code."""

    kernels: int
    nodes: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.nodes} nodes, {self.kernels} of them kernels, {self.bytes:,} B of code"


def with_target(entry: SavedProgram, signature: Signature, arch: str) -> SavedProgram:
    """A program with one more target.

    Raises:
        UnsavableError: it has what no target can bring along; the message has the line.
        RuntimeError: it does not compile, or there is no compiler.
    """
    traced = traced_for_gpus(entry, signature)
    target = compiler().target_of(traced.lower().plan, arch)
    known = {} if entry.targets is None else entry.targets.by_arch
    targets = SavedTargets(traced.out_types, traced.ranges, {**known, arch: target})
    return replace(entry, targets=targets)


def traced_for_gpus(entry: SavedProgram, signature: Signature) -> Traced:
    """A program as it is when its function has been traced."""
    key = entry.key()
    structure = entry.result_structure(key)
    return Traced(entry.program, key, structure, signature, "cuda", "kept", compiler)
