"""Programs that ran and had to end, and what they run in."""

from __future__ import annotations

import numpy as np

import tracegraph


def TimeLimitError():
    count = tracegraph.jit(
        lambda n: tracegraph.while_loop(lambda n: n >= 0, lambda n: (n + 1) % 1000, n)
    )
    with tracegraph.time_limit(0.05):
        count(0)

    # Instead:
    count = tracegraph.jit(lambda n: tracegraph.while_loop(lambda n: n < 1000, lambda n: n + 1, n))
    with tracegraph.time_limit(60):
        count(0)


def NonFiniteError():
    normalise = tracegraph.jit(lambda x: x / x.sum())
    with tracegraph.debug.nans():
        normalise(np.zeros(3))

    # Instead:
    normalise = tracegraph.jit(lambda x: x / np.maximum(x.sum(), 1e-300))
    with tracegraph.debug.nans():
        normalise(np.zeros(3))


def FrozenRandomWarning():
    @tracegraph.jit
    def noisy(x):
        return x + np.random.normal(size=3)

    noisy(np.ones(3))

    # Instead:
    @tracegraph.jit
    def noisy(x, key):
        return x + tracegraph.random.normal(key, (3,))

    noisy(np.ones(3), tracegraph.random.key(0))


def RetraceWarning():
    double = tracegraph.jit(lambda x: 2 * x, device="host")
    for n in range(70):
        double(np.ones(n))

    # Instead:
    double = tracegraph.jit(lambda x: 2 * x, device="host")
    for n in range(70):
        double(np.pad(np.ones(n), (0, 128 - n)))


def FallbackWarning():
    # On a GPU that lacks something:
    tracegraph.jit(lambda x: tracegraph.while_loop(lambda x: x > 1, lambda x: x / 2, x))(9.0)

    # Message:
    tracegraph.errors.FallbackWarning("<lambda>", "cuda:0", ["the host drives its loops"])


def CleanUpWarning():
    # On a GPU:
    # The driver refuses to free something, most often after another error.
    # Message:
    tracegraph.errors.CleanUpWarning(
        "a graph", "cuGraphDestroy", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"
    )


def ClosedError():
    compiled = tracegraph.jit(lambda x: 2 * x, device="host").lower(np.ones(3)).compile()
    compiled.close()
    compiled(np.ones(3))

    # Instead:
    compiled = tracegraph.jit(lambda x: 2 * x, device="host").lower(np.ones(3)).compile()
    compiled(np.ones(3))


def ExportError():
    compiled = tracegraph.jit(lambda x: 2 * x, device="host").lower(np.ones(3)).compile()
    compiled.export_graph(np.ones(3))

    # Instead:
    compiled(np.ones(3))


def NoGraphError():
    compiled = tracegraph.jit(lambda x: 2 * x, device="host").lower(np.ones(3)).compile()
    print(compiled.graph)

    # Instead:
    print(compiled.plan)


def StoppedError():
    # On a GPU:
    endless = tracegraph.jit(
        lambda n: tracegraph.while_loop(lambda n: n >= 0, lambda n: (n + 1) % 1000, n)
    )
    result = endless(0)  # returns at once; Ctrl-C while it is waited for stops the program
    np.asarray(result)

    # Message:
    tracegraph.errors.StoppedError("KeyboardInterrupt")


def OutOfMemoryError():
    # On a GPU:
    tracegraph.jit(lambda n: tracegraph.numpy.zeros((1 << 20, 1 << 20)) + n)(1.0)

    # Message:
    tracegraph.errors.OutOfMemoryError(
        "cuda:0", 1 << 43, 84_000_000_000, 85_000_000_000, {"arrays": 0, "scratch": 2048}, []
    )


def DeviceLostError():
    # On a GPU:
    # A kernel has written outside of its arrays, or another process has reset the device.
    # Message:
    tracegraph.errors.DeviceLostError("CUDA_ERROR_ILLEGAL_ADDRESS")


def InstantiationError():
    # On a GPU:
    compiled = tracegraph.jit(lambda x: 2 * x).lower(np.ones(3)).compile()
    exported = compiled.export_graph(np.ones(3))
    exported.instantiate()  # refused, for example, if other code has changed the graph

    # Message:
    tracegraph.errors.InstantiationError(
        "<lambda>", "the kernel node k0", "CUDA_ERROR_INVALID_VALUE"
    )


def UpdateError():
    # On two GPUs:
    double = tracegraph.jit(lambda x: 2 * x, device="cuda:0")
    double(tracegraph.asarray(np.ones(3), device="cuda:0"))
    double(tracegraph.asarray(np.ones(3), device="cuda:1"))  # where the driver refuses its address

    # Message:
    tracegraph.errors.UpdateError("<lambda>", "the kernel node k0", "CUDA_ERROR_INVALID_VALUE")


def NodeError():
    # On a GPU:
    compiled = tracegraph.jit(np.sort).lower(np.ones(100_000)).compile()
    exported = compiled.export_graph(np.ones(100_000))
    for node in exported.nodes:
        node.set_priority(1)  # nodes that copy memory have none

    # Instead:
    for node in exported.nodes:
        if node.kind == "kernel":
            node.set_priority(1)

    # Message:
    tracegraph.errors.NodeError(
        "the memcpy node m0", "has no priority", "CUDA runs kernels alone by priorities"
    )


def NotInstantiatedError():
    # On a GPU:
    compiled = tracegraph.jit(lambda x: 2 * x).lower(np.ones(3)).compile()
    exported = compiled.export_graph(np.ones(3))
    exported.update(compiled.export_graph(np.ones(3)))

    # Instead:
    exported.instantiate()
    exported.update(compiled.export_graph(np.ones(3)))

    # Message:
    tracegraph.errors.NotInstantiatedError("<lambda>")


def CapturingStreamError():
    # On a GPU:
    import torch

    def printed(x):
        tracegraph.debug.print("{}", x)
        return x

    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        tracegraph.jit(printed)(torch.ones(3, device="cuda"))

    # Message:
    tracegraph.errors.CapturingStreamError("printed", "it prints, and the host has to hear of it")


def VerificationError():
    # In a pass or an op of yours:
    # A program is not well formed. Without your own passes and ops, this is a defect: report it.
    # Message:
    tracegraph.errors.VerificationError(
        "step", "equation 1 uses a value that is not defined", "program step"
    )


def ResultTypeError():
    # In an op of yours:
    # The reference returns another type than the type rule says.
    # Message:
    tracegraph.errors.ResultTypeError("sin x: f64[3]", ["f32[3]"], ["f64[3]"], None)
