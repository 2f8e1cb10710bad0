"""Your own kernels and functions: declarations that do not hold, and code that does not compile."""

from __future__ import annotations

import numpy as np

import tracegraph


def CustomKernelError():
    source = 'extern "C" __global__ void twice(const double* x, double* y) { *y = 2 * *x; }'

    @tracegraph.kernel(source=source, entry="twice", out=lambda x: x, grid=0, block=32)
    def twice(x):
        return 2 * x

    twice(np.ones(1))

    # Instead:
    @tracegraph.kernel(source=source, entry="twice", out=lambda x: x, grid=1, block=32)
    def twice(x):
        return 2 * x

    twice(np.ones(1))


def KernelResultError():
    source = 'extern "C" __global__ void twice(const float* x, float* y) { *y = 2 * *x; }'

    @tracegraph.kernel(source=source, entry="twice", out=lambda x: x, grid=1, block=32)
    def twice(x):
        return x.astype(np.float64) * 2

    twice(np.ones(1, np.float32))

    # Instead:
    @tracegraph.kernel(source=source, entry="twice", out=lambda x: x, grid=1, block=32)
    def twice(x):
        return x * 2

    twice(np.ones(1, np.float32))


def KernelCompileError():
    # On a GPU:
    source = 'extern "C" __global__ void twice(const float* x, float* y) { *y = 2 * x; }'

    @tracegraph.kernel(source=source, entry="twice", out=lambda x: x, grid=1, block=32)
    def twice(x):
        return 2 * x

    tracegraph.jit(lambda x: twice(x))(np.ones(1, np.float32))

    # Instead:
    source = 'extern "C" __global__ void twice(const float* x, float* y) { *y = 2 * *x; }'

    # Message:
    tracegraph.errors.KernelCompileError(
        "twice (example.py:3)",
        "sm_90",
        'twice.cu(1): error: a value of type "const float *" cannot be assigned to "float"',
        'extern "C" __global__ void twice(const float* x, float* out0)',
        None,
    )


def KernelLaunchError():
    # On a GPU:
    source = 'extern "C" __global__ void twice(const float* x, float* y) { *y = 2 * *x; }'

    @tracegraph.kernel(
        source=source, entry="twice", out=lambda x: x, grid=9999, block=32, cooperative=True
    )
    def twice(x):
        return 2 * x

    tracegraph.jit(lambda x: twice(x))(np.ones(1, np.float32))

    # Instead:
    @tracegraph.kernel(source=source, entry="twice", out=lambda x: x, grid=9999, block=32)
    def twice(x):
        return 2 * x

    # Message:
    tracegraph.errors.KernelLaunchError(
        "twice (example.py:3)",
        "is cooperative, and has 9999 blocks; 4224 fit on the device at once",
        "example.py:9",
    )


def CapturedCallError():
    # On a GPU:
    def synchronizes(x, stream):
        stream.sync()

    tracegraph.jit(lambda x: tracegraph.capture(synchronizes, out=lambda x: x)(x))(np.ones(3))

    # Instead:
    # Call only what a stream capture may hold: launches, copies on the stream, no waits.

    # Message:
    tracegraph.errors.CapturedCallError(
        "captured call synchronizes (example.py:1)",
        RuntimeError("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
        "example.py:4",
    )
