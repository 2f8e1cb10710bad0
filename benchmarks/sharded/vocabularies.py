"""Vocabularies: the words of programs in tracegraph and in JAX, on one device and on several.

Those of PyTorch are in `in_torch`, whose programs run in a process for each device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

Step = Callable[[Any], Any]


def _as_float32(x: Any) -> Any:
    return x.astype(numpy.float32)


def _whole(found: Any, same: bool) -> Any:
    return numpy.asarray(found)


@dataclass(frozen=True)
class Vocabulary:
    """Arrays, loops and collectives over `count` devices.

    `neighbours` gives the last row of the device before and the first row of the one behind;
    `transposed` the transpose of an array whose rows are divided. `built` is a function of whole
    arrays, by one of blocks, the inputs that are divided, and whether the results are the same on
    all; `placed` puts an input where such a function needs it, and `wait` waits for a result.
    `whole` gives all elements of a result, which may be the same on all.
    """

    name: str
    count: int
    np: Any
    loop: Callable[[int, Step, Any], Any]
    loop_while: Callable[[Step, Step, Any], Any]
    psum: Step
    neighbours: Step
    transposed: Step
    built: Callable[[Callable[..., Any], Sequence[bool], bool], Callable[..., Any]]
    placed: Callable[[Any, bool], Any]
    wait: Callable[[Any], Any]
    as_float32: Step = _as_float32
    whole: Callable[[Any, bool], Any] = _whole


def tracegraph_on_one(device: str, count: int) -> Vocabulary:
    """tracegraph without a mesh, whatever the number of devices."""
    import tracegraph

    return Vocabulary(
        "tracegraph on one device",
        1,
        numpy,
        lambda n, step, init: tracegraph.fori_loop(0, n, lambda i, x: step(x), init),
        tracegraph.while_loop,
        lambda x: x,
        lambda u: (u[-1:], u[:1]),
        lambda x: x.T,
        lambda fun, divided, same: tracegraph.jit(fun, device=device),
        lambda x, divided: tracegraph.device_put(x, device),
        lambda found: [leaf.synchronize() for leaf in tracegraph.tree.leaves(found)],
    )


def tracegraph_on_all(device: str, count: int) -> Vocabulary:
    """tracegraph on a mesh."""
    import tracegraph
    from tracegraph import PartitionSpec as P

    mesh = tracegraph.Mesh(count, "x", device=device)

    def spec(divided: bool) -> P:
        return P("x") if divided else P()

    def built(fun: Any, divided: Sequence[bool], same: bool) -> Any:
        specs = tuple(map(spec, divided))
        mapped = tracegraph.shard(fun, mesh=mesh, in_specs=specs, out_specs=spec(not same))
        return tracegraph.jit(mapped)

    def transposed(x: Any) -> Any:
        return tracegraph.all_to_all(x, "x", 1, 0, tiled=True).T

    return Vocabulary(
        f"tracegraph on {count}",
        count,
        numpy,
        lambda n, step, init: tracegraph.fori_loop(0, n, lambda i, x: step(x), init),
        tracegraph.while_loop,
        lambda x: tracegraph.psum(x, "x"),
        lambda u: tracegraph.halo(u, "x"),
        transposed,
        built,
        lambda x, divided: tracegraph.device_put(x, mesh, spec(divided)),
        lambda found: [leaf.synchronize() for leaf in tracegraph.tree.leaves(found)],
    )


def jax_on_all(device: str, count: int) -> Vocabulary:
    """JAX's shard_map; whether with command buffers is a setting of its process.

    Products are float32, as those of the others: its own choice on a GPU is TF32.
    """
    import jax
    from jax import lax
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    jax.config.update("jax_default_matmul_precision", "highest")
    mesh = Mesh(numpy.array(jax.devices()[:count]), ("x",))

    def spec(divided: bool) -> P:
        return P("x") if divided else P()

    def built(fun: Any, divided: Sequence[bool], same: bool) -> Any:
        specs = tuple(map(spec, divided))
        return jax.jit(
            jax.shard_map(fun, mesh=mesh, in_specs=specs, out_specs=spec(not same), check_vma=False)
        )

    def neighbours(u: Any) -> Any:
        forward = [(i, (i + 1) % count) for i in range(count)]
        back = [(target, source) for source, target in forward]
        return lax.ppermute(u[-1:], "x", forward), lax.ppermute(u[:1], "x", back)

    return Vocabulary(
        f"JAX on {count}",
        count,
        jax.numpy,
        lambda n, step, init: lax.fori_loop(0, n, lambda i, x: step(x), init),
        lax.while_loop,
        lambda x: lax.psum(x, "x"),
        neighbours,
        lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True).T,
        built,
        lambda x, divided: jax.device_put(x, NamedSharding(mesh, spec(divided))),
        jax.block_until_ready,
    )


VOCABULARIES: dict[str, Callable[[str, int], Vocabulary]] = {
    "one": tracegraph_on_one,
    "all": tracegraph_on_all,
    "jax": jax_on_all,
    "jax-buffers": jax_on_all,
}
"""By the name of the way to run them."""
