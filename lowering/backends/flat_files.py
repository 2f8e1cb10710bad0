"""Flat files: Plans for GPUs, planned with kernels of our own alone if asked for, as C runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lowering.cuda.recipe.flat.c_declarations import C_LOADER as C_LOADER
from lowering.cuda.recipe.flat.writing import flat_file
from lowering.cuda.recipe.recording import recorded
from lowering.plan.plan import Plan
from lowering.plan.target.overrides import declared, override
from lowering.plan.target.target import Target


@contextmanager
def planned_without_libraries(target: Target) -> Iterator[Target]:
    """Within the context, Plans for the target that this returns call a library only for what we
    have no kernels for: Fourier transforms.
    """
    policy = target.lapack
    lapack = None if policy is None else replace(policy, least={}, at_once={})
    with override(replace(declared(), products="nests")):
        yield replace(target, lapack=lapack)


def flat_file_of(plan: Plan, arch: str, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
    """The flat file of a Plan for an architecture such as ``"sm_90"``, with these names.

    Raises:
        UnsavableError: the Plan has what C cannot have; the message has the line.
        RuntimeError: its kernels do not compile, or there is no compiler.
    """
    made = recorded(plan, arch)
    return flat_file(made.recipe, made.data, inputs, outputs)
