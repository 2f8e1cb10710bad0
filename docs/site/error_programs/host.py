"""Functions of the host that programs call, and events of other code."""

from __future__ import annotations

import ctypes
import time

import numpy as np

import tracegraph


def CallbackTypesError():
    tracegraph.pure_callback(np.sin, "float64", 1.0)

    # Instead:
    tracegraph.pure_callback(np.sin, tracegraph.ArrayType("float64", ()), 1.0)


def CallbackResultError():
    def total(x):
        return np.sum(x)

    number = tracegraph.ArrayType("float64", ())
    tracegraph.pure_callback(total, number, np.ones(3, np.float32))

    # Instead:
    def total(x):
        return np.sum(x, dtype=np.float64)

    tracegraph.pure_callback(total, number, np.ones(3, np.float32))


def CallbackStructureError():
    number = tracegraph.ArrayType("float64", ())
    tracegraph.pure_callback(np.modf, number, 1.5)

    # Instead:
    tracegraph.pure_callback(np.modf, (number, number), 1.5)


def CallbackBatchError():
    def asked(x):
        return tracegraph.pure_callback(np.sin, tracegraph.ArrayType("float64", ()), x)

    tracegraph.vmap(asked)(np.ones(3))

    # Instead:
    def asked(x):
        number = tracegraph.ArrayType("float64", ())
        return tracegraph.pure_callback(np.sin, number, x, vmap_method="expand_dims")

    tracegraph.vmap(asked)(np.ones(3))


def HostCallError():
    tracegraph.host_call(time.sleep)

    # Instead:
    libc = ctypes.CDLL(None)
    tracegraph.host_call(libc.free)


def HostCallInBodyError():
    libc = ctypes.CDLL(None)

    @tracegraph.jit(device="host")
    def freed(x):
        def body(i, x):
            tracegraph.host_call(libc.free)
            return x + 1

        return tracegraph.fori_loop(0, 3, body, x)

    freed(1.0)

    # Instead:
    @tracegraph.jit(device="host")
    def freed(x):
        x = tracegraph.fori_loop(0, 3, lambda i, x: x + 1, x)
        tracegraph.host_call(libc.free)
        return x

    freed(1.0)


def EventError():
    tracegraph.event.record("finished")

    # Instead:
    handle = 0x5000  # of a CUevent
    tracegraph.event.record(handle)


def EventInBodyError():
    handle = 0x5000  # of a CUevent

    @tracegraph.jit(device="host")
    def run(x):
        def body(i, x):
            tracegraph.event.record(handle, x)
            return x + 1

        return tracegraph.fori_loop(0, 3, body, x)

    run(1.0)

    # Instead:
    @tracegraph.jit(device="host")
    def run(x):
        x = tracegraph.fori_loop(0, 3, lambda i, x: x + 1, x)
        tracegraph.event.record(handle, x)
        return x

    run(1.0)


def CallbackTimeoutError():
    # On a GPU:
    def slow(x):
        time.sleep(10)
        return x

    number = tracegraph.ArrayType("float64", ())
    float(tracegraph.jit(lambda x: tracegraph.pure_callback(slow, number, x, time_limit=1.0))(1.0))

    # Instead:
    float(tracegraph.jit(lambda x: tracegraph.pure_callback(slow, number, x, time_limit=20.0))(1.0))

    # Message:
    tracegraph.errors.CallbackTimeoutError("slow", 1.0, None)


def CallbackDeadlockError():
    # On a GPU:
    double = tracegraph.jit(lambda x: 2 * x)
    number = tracegraph.ArrayType("float64", ())
    float(tracegraph.jit(lambda x: tracegraph.pure_callback(double, number, x))(1.0))

    # Instead:
    on_host = tracegraph.jit(lambda x: 2 * x, device="host")
    float(tracegraph.jit(lambda x: tracegraph.pure_callback(on_host, number, x))(1.0))

    # Message:
    tracegraph.errors.CallbackDeadlockError("double", "a launch on the same device")
