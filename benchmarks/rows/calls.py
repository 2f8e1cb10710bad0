"""What a call costs: functions so small that nothing else counts."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness.capture import and_graphs
from benchmarks.harness.own import written_once
from benchmarks.harness.row import Row

MANY = 20


def _inputs(draw):
    n, dtype = draw.size(1024), draw.dtype("float32", "float64")
    return [draw.uniform(n, dtype) for _ in range(3)]


def fused(x, a, b):
    return x * a + b


def _torch(*arrays):
    import torch

    f = torch.compile(fused)
    return lambda: f(*arrays)


def _cupy(*arrays):
    import cupy

    f = cupy.fuse(fused)
    return lambda: f(*arrays)


def _warp(x, a, b):
    import warp

    from .warp_kernels import multiply_add

    y = warp.empty_like(x)

    def run():
        warp.launch(multiply_add, x.shape, [x, a, b, y])
        return y

    return run


CALL = Row(
    name="call",
    title="x*a + b, a call and its result",
    inputs=_inputs,
    contestants={
        **written_once(lambda xp, loops: fused),
        **and_graphs(torch=_torch, cupy=_cupy, warp=_warp),
    },
    limits=("launch",),
)

CALL_CPU = replace(
    CALL,
    name="call_cpu",
    title="x*a + b, how long a call that is not waited for keeps its thread",
    waits=False,
    devices=("cuda",),
)


def _many_inputs(draw):
    n, dtype = draw.size(1024), draw.dtype("float32", "float64")
    return [draw.uniform(n, dtype) for _ in range(MANY)]


def _twice_and_one(x):
    return x * 2 + 1


def _each(*arrays):
    return tuple(map(_twice_and_one, arrays))


def _many_torch(*arrays):
    import torch

    f = torch.compile(_each)
    return lambda: f(*arrays)


def _many_cupy(*arrays):
    import cupy

    f = cupy.fuse(_twice_and_one)
    return lambda: [f(x) for x in arrays]


def _many_warp(*arrays):
    import warp

    from .warp_kernels import twice_and_one

    results = [warp.empty_like(x) for x in arrays]

    def run():
        for x, y in zip(arrays, results, strict=True):
            warp.launch(twice_and_one, x.shape, [x, y])
        return results

    return run


MANY_ARRAYS = Row(
    name="many_arrays",
    title=f"{MANY} arrays in, {MANY} out, a call and its results",
    inputs=_many_inputs,
    contestants={
        **written_once(lambda xp, loops: _each),
        **and_graphs(torch=_many_torch, cupy=_many_cupy, warp=_many_warp),
    },
    limits=("launch",),
)

ROWS = (CALL, CALL_CPU, MANY_ARRAYS)
