"""Tracing of a sharded function: a program of each device, for types of blocks.

It is checked here: devices meet in each collective, and results are the same where their specs say
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tracegraph import errors, tree
from tracegraph.ir.program import Program
from tracegraph.ir.record import replace
from tracegraph.ir.varying import EQUAL, Axes, VaryingAxes
from tracegraph.sharding.partition_spec import PartitionSpec, global_type, local_type
from tracegraph.sharding.shard import ShardedFunction
from tracegraph.sharding.sharding import Sharding
from tracegraph.sharding.uniformity import chain_of, check_uniform
from tracegraph.staging.calls.random_draws import warned_of_draws
from tracegraph.staging.calls.signature import CallKey, Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.scratch import Scratch
from tracegraph.staging.stages import Traced, flat_results
from tracegraph.tracing.trace import trace_program


def trace_sharded(
    fun: ShardedFunction, signature: Signature, key: CallKey, device: str, scratch: Scratch
) -> Traced:
    """Trace a sharded function for the types of a call.

    Raises:
        ShardingError: specs or shapes do not fit the arguments or the results.
        UniformityError: devices may go different ways around a collective.
        OutSpecError: a result differs between devices that must return the same.
    """
    mesh, types = fun.mesh, signature.types(key)
    paths = signature.paths(key.structure)
    in_specs = _in_specs(fun, signature, key)
    named = [f"argument {path} of {errors.function_text(fun.function)}" for path in paths]
    local = [
        local_type(mesh, spec, type_, what)
        for spec, type_, what in zip(in_specs, types, named, strict=True)
    ]
    structures: list[tree.Structure] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = signature.rebuild(key, leaves)
        results, structure = flat_results(signature.function, fun.function(*args, **kwargs))
        structures.append(structure)
        return results

    name = getattr(fun.function, "__name__", type(fun.function).__name__)
    sets, named_by = [spec.axes for spec in in_specs], partial(tuple, paths)
    with warned_of_draws(fun.function):
        program = trace_program(flat, local, name, named_by, mesh.kind, sets, mesh.shape)
    program = replace(program, varying=tuple(sets))
    sets += [EQUAL] * (len(program.body.params) - len(sets))

    def describe(number: int) -> str:
        return f"argument {paths[number]}, divided by {in_specs[number]}"

    check_uniform(program.body, sets, describe)
    out_specs = _out_specs(fun, structures[0], program, sets, describe)
    what = tree.paths(structures[0], "result")
    out_types = [
        global_type(mesh, spec, type_, path)
        for spec, type_, path in zip(out_specs, program.out_types, what, strict=True)
    ]
    sharding = Sharding(
        mesh, tuple(in_specs), tuple(out_specs), types, tuple(out_types), tuple(paths)
    )
    return Traced(program, key, structures[0], signature, device, scratch, compiler, sharding)


def _in_specs(fun: ShardedFunction, signature: Signature, key: CallKey) -> list[PartitionSpec]:
    """The spec of each leaf of the arguments."""
    function = errors.function_text(fun.function)
    args, kwargs = tree.unflatten(key.structure, range(len(key.leaves)))
    if kwargs:
        raise errors.ShardingError(
            f"pass the arguments of {function} by position: in_specs divides these; got "
            f"{', '.join(kwargs)} by name"
        )
    prefix = fun.in_specs
    entries = (prefix,) * len(args) if isinstance(prefix, PartitionSpec) else prefix
    if len(entries) != len(args):
        raise errors.ShardingError(
            f"in_specs of {function} must be a PartitionSpec, or a tuple with an entry for each of "
            f"its {len(args)} arguments; got {prefix!r}"
        )
    found = list[PartitionSpec]()
    for number, (entry, value) in enumerate(zip(entries, args, strict=True)):
        what = f"argument {signature.name(number)} of {function}"
        found += _spread(entry, value, "in_specs", what)
    return found


def _spread(prefix: Any, value: Any, parameter: str, what: str) -> list[PartitionSpec]:
    try:
        specs: list[PartitionSpec] = tree.spread_prefix(prefix, value)
    except ValueError:
        shape = errors.structure_text(tree.structure(value))
        raise errors.ShardingError(
            f"{parameter} has {prefix!r} for {what}, whose tree is {shape}; give one "
            "PartitionSpec, or the same tree of them, where one may stand for a whole subtree"
        ) from None
    return specs


def _out_specs(
    fun: ShardedFunction,
    structure: tree.Structure,
    program: Program,
    sets: Sequence[Axes],
    describe: Any,
) -> list[PartitionSpec]:
    """The spec of each leaf of the result.

    Raises:
        OutSpecError: devices return different results where they must return the same.
    """
    function = errors.function_text(fun.function)
    numbers = tree.unflatten(structure, range(structure.num_leaves))
    specs = _spread(fun.out_specs, numbers, "out_specs", f"the result of {function}")
    varying = VaryingAxes().results(program.body, sets)
    paths = tree.paths(structure, "result")
    for path, spec, axes, atom in zip(paths, specs, varying, program.body.results, strict=False):
        more = sorted(axes - spec.axes)
        if more:
            chain = chain_of(program.body, sets, describe, atom, more[0])
            raise errors.OutSpecError(path, str(spec), more, chain, function)
    return specs
