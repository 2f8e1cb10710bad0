"""Calls of jitted functions: arguments, results, and the arrays that they become."""

from __future__ import annotations

import numpy as np

import tracegraph


def UnhashableStaticError():
    @tracegraph.jit(static_argnames="axes")
    def total(x, axes):
        return np.sum(x, axis=tuple(axes))

    total(np.ones((2, 3)), axes=[0, 1])

    # Instead:
    total(np.ones((2, 3)), axes=(0, 1))


def UnsupportedArgumentError():
    @tracegraph.jit
    def scaled(x, unit):
        return 1000 * x if unit == "km" else x

    scaled(2.0, "km")

    # Instead:
    @tracegraph.jit(static_argnames="unit")
    def scaled(x, unit):
        return 1000 * x if unit == "km" else x

    scaled(2.0, unit="km")


def EndlessTreeError():
    double = tracegraph.jit(lambda tree: tree)
    endless = [1.0]
    endless.append(endless)
    double(endless)

    # Instead:
    double([1.0, [1.0]])


def IntegerRangeError():
    @tracegraph.jit
    def shifted(x):
        return x + 2**70

    shifted(1)

    # Instead:
    @tracegraph.jit
    def shifted(x):
        return x + 2.0**70

    shifted(1)


def UnsupportedResultError():
    @tracegraph.jit
    def mean(x):
        return {"mean": np.mean(x), "unit": "m"}

    mean(np.arange(3.0))

    # Instead:
    @tracegraph.jit
    def mean(x):
        return {"mean": np.mean(x)}

    mean(np.arange(3.0)) | {"unit": "m"}


def KeywordError():
    tracegraph.grad(lambda x, y: x * y, argnum=1)

    # Instead:
    tracegraph.grad(lambda x, y: x * y, argnums=1)


def ArgumentTypesError():
    double = tracegraph.jit(lambda x: 2 * x, device="host")
    compiled = double.lower(np.ones(3)).compile()
    compiled(np.ones(4))

    # Instead:
    double(np.ones(4))


def ImmutableArrayError():
    x = tracegraph.asarray([1.0, 2.0])
    x[0] = 5.0

    # Instead:
    x = x.at[0].set(5.0)
    y = x.copy()
    y[0] = 6.0


def DonatedArrayError():
    step = tracegraph.jit(lambda x: x + 1, donate_argnums=0, device="host")
    x = tracegraph.asarray(np.ones(3))
    step(x)
    x + 1

    # Instead:
    x = tracegraph.asarray(np.ones(3))
    x = step(x)
    x + 1


def RawMemoryError():
    memory = np.ones(3)
    tracegraph.owned(memory.ctypes.data, -24, owner=memory)

    # Instead:
    tracegraph.owned(memory.ctypes.data, tracegraph.ArrayType(float, (3,)), owner=memory)


def NotDrawableError():
    double = tracegraph.jit(lambda x: 2 * x, device="host")
    tracegraph.show(double)

    # Instead:
    tracegraph.show(double.lower(np.ones(3)))


def ShowOptionError():
    program = tracegraph.make_program(lambda x: 2 * x)(np.ones(3))
    tracegraph.show(program, depth=0)

    # Instead:
    tracegraph.show(program, depth=1)


def PrintArgumentError():
    tracegraph.debug.print("{}: {}", "loss", 0.5)

    # Instead:
    tracegraph.debug.print("loss: {}", 0.5)


def PrintFormatError():
    tracegraph.debug.print("loss: {:.2f}", np.ones(3))

    # Instead:
    tracegraph.debug.print("loss: {}", np.ones(3))


def ExportedTypesError():
    double = tracegraph.export(lambda x: 2 * x, tracegraph.ArrayType("float64", (3,)))
    double(np.ones(3, np.float32))

    # Instead:
    double(np.ones(3))


def UnsavableError():
    number = tracegraph.ArrayType("float64", ())

    def asked(x):
        return tracegraph.pure_callback(np.sin, number, x)

    tracegraph.export(asked, number)

    # Instead:
    tracegraph.export(np.sin, number)


def UntrustedCodeError():
    halved = tracegraph.elementwise(lambda x: x / 2, cuda="{0} / 2")
    saved = bytes(tracegraph.export(lambda x: halved(x), 1.0))
    tracegraph.load(saved, trusted=False)

    # Instead:
    tracegraph.load(saved)


def DamagedFileError():
    saved = bytes(tracegraph.export(lambda x: 2 * x, 1.0))
    tracegraph.load(saved[:-100])

    # Instead:
    tracegraph.load(saved)


def MalformedProgramError():
    # In a file that something else than `tracegraph.save` has written or changed:
    # It is read as data and checked, and a program of it breaks the rules.

    # Message:
    tracegraph.errors.MalformedProgramError("its types are not those of its parameters")


def MalformedTargetError():
    # In a file that something else than `tracegraph.save` has written or changed:
    # A target has a graph that cannot be, such as one whose kernel is in no cubin.

    # Message:
    tracegraph.errors.MalformedTargetError("a kernel has no function 7")


def ExportVersionError():
    # In a file of a newer tracegraph:
    # It uses an operation that this one does not have, or a newer layout.

    # Message:
    tracegraph.errors.ExportVersionError("version 2 of the schema", "1")


def UnknownTreeWarning():
    # In a process that does not define the class:
    double = tracegraph.load("double.tg")  # returns a State
    double(1.0)

    # Message:
    tracegraph.errors.UnknownTreeWarning("model.State")
