"""Tracing of a call: a function of arrays becomes a program, for the types of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tracegraph import errors, tree
from tracegraph.devices import is_mesh
from tracegraph.sharding.mesh import mesh_of
from tracegraph.sharding.shard import ShardedFunction
from tracegraph.staging.calls.random_draws import warned_of_draws
from tracegraph.staging.calls.ranges import ranged
from tracegraph.staging.calls.sharded_tracing import trace_sharded
from tracegraph.staging.calls.signature import CallKey, Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.program_function import ProgramFunction
from tracegraph.staging.scratch import Scratch
from tracegraph.staging.stages import Traced, flat_results
from tracegraph.tracing.trace import trace_program


def trace_call(
    fun: Callable[..., Any],
    signature: Signature,
    key: CallKey,
    device: str,
    scratch: Scratch = "kept",
) -> Traced:
    """Trace `fun` for the types of a call, or take its program for these.

    Raises:
        ArgumentTypesError: it has programs, but none for these types.
        ShardingError: an argument is in blocks, and the function is not one of blocks.
    """
    programs: Any = fun
    if isinstance(programs, ProgramFunction):
        program, structure = programs.program_for(signature, key)
        return Traced(program, key, structure, signature, device, scratch, compiler)
    if isinstance(fun, ShardedFunction):
        return trace_sharded(fun, signature, key, device, scratch)
    if is_mesh(device):
        raise errors.ShardingError(
            f"an argument of {signature.function} is an Array divided over {mesh_of(device)}, "
            "which only functions of shard take; put this into the sharded function, or move the "
            'array by tracegraph.device_put(x, "host")'
        )
    out_structure: list[tree.Structure] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = signature.rebuild(key, leaves)
        results, structure = flat_results(signature.function, fun(*args, **kwargs))
        out_structure.append(structure)
        return results

    paths = partial(signature.paths, key.structure)
    name = getattr(fun, "__name__", type(fun).__name__)
    with ranged(f"trace {name}"), warned_of_draws(fun):
        program = trace_program(flat, signature.types(key), name, paths, device)
    return Traced(program, key, out_structure[0], signature, device, scratch, compiler)
