"""shard: a function of the block of each device, mapped over a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tracegraph import errors, tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.sharding.mesh import Mesh, require_mesh
from tracegraph.sharding.partition_spec import PartitionSpec, require_axes
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.trace import current_trace

__all__ = ["shard", "shard_map"]

Specs = Any
"""A PartitionSpec, or a tree of them that is a prefix of arguments or results."""


@entry_point
@errors.refuses(
    check_vma="what is the same on all devices is always checked",
    check_rep="what is the same on all devices is always checked",
    axis_names="a function is mapped over all axes of its mesh",
    auto="a function is mapped over all axes of its mesh",
)
def shard(
    fun: Callable[..., Any] | None = None, *, mesh: Mesh, in_specs: Specs, out_specs: Specs
) -> Any:
    """A function that runs on each device of a mesh, with its blocks of the arguments.

    Each device runs the same program, and they exchange arrays by collectives, such as `psum`. The
    function is traced once, on types of blocks; jit it, or call it as it is.

    Args:
        fun: takes and returns trees of arrays. Without it, `shard` is a decorator.
        mesh: the devices.
        in_specs: how the positional arguments are divided: a `PartitionSpec`, or a tuple with an
            entry for each, which may be a tree of specs for parts of it. Static arguments have
            None.
        out_specs: how the blocks that the function returns make up its results: a `PartitionSpec`,
            or a tree of them for parts of the result. Devices along an axis that a spec does not
            name must return the same.

    Returns:
        A function of whole arrays: of NumPy, or Arrays that are divided by the same specs, which
        are not copied. Its results are Arrays in blocks; `numpy.asarray` makes them whole.

    Raises:
        ShardingError: `mesh` is no Mesh, or specs are none or name axes that it lacks; or by the
            function, when called: specs or shapes do not fit the arguments or results, or the call
            is inside of a traced function.
        UniformityError: when called: devices may go different ways around a collective.
        OutSpecError: when called: a result differs between devices that must return the same.

    >>> import tracegraph
    >>> from tracegraph import PartitionSpec as P
    >>> mesh = tracegraph.Mesh(2, "x", device="host")
    >>> @tracegraph.jit
    ... @shard(mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()))
    ... def normalized(x):
    ...     norm = np.sqrt(tracegraph.psum(np.sum(x * x), "x"))
    ...     return x / norm, norm
    >>> unit, norm = normalized(np.array([0.0, 3.0, 0.0, 4.0]))
    >>> np.asarray(unit), float(norm)
    (array([0. , 0.6, 0. , 0.8]), 5.0)
    """
    require_mesh("shard", mesh)
    if not isinstance(in_specs, (PartitionSpec, tuple, list)):
        raise errors.ShardingError(
            "shard: in_specs must be a PartitionSpec, or a tuple with an entry for each argument; "
            f"got {in_specs!r}"
        )
    for parameter, specs in {"in_specs": in_specs, "out_specs": out_specs}.items():
        leaves, structure = tree.flatten(specs)
        for path, leaf in zip(tree.paths(structure, parameter), leaves, strict=True):
            require_axes(mesh, leaf, f"shard: {path}")
    if fun is None:
        return functools.partial(shard, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    if not callable(fun):
        raise errors.NotCallableError("shard", "fun", fun)
    return ShardedFunction(fun, mesh, in_specs, out_specs)


shard_map = shard


class ShardedFunction:
    """What `shard` returns. `function` is the user's, which takes and returns blocks."""

    def __init__(
        self, function: Callable[..., Any], mesh: Mesh, in_specs: Specs, out_specs: Specs
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function, self.mesh = function, mesh
        self.in_specs, self.out_specs = in_specs, out_specs
        self._jitted: Callable[..., Any] | None = None

    @entry_point
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function on the mesh.

        Raises:
            ShardingError: another function is being traced.
        """
        if current_trace() is not None:
            raise errors.ShardingError(
                f"the sharded function {errors.function_text(self.function)} is called inside of a "
                "traced function; jit it alone, and move what is around it into it: grad, vmap and "
                "loops may be inside"
            )
        if self._jitted is None:
            self._jitted = FUNCTIONS["jit"](self)
        return self._jitted(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{errors.function_text(self.function)}, sharded over {self.mesh}>"
