"""Small Plans written by hand, one for each kind of node and nesting."""

from dataclasses import replace

import numpy as np

from lowering.plan.calls.fourier import FourierTransform
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode, WhileNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import (
    CallNest,
    Kernel,
    MapNest,
    PrintedArray,
    PrintNest,
    Publish,
    Require,
    SetCondition,
    Store,
    space_index,
)
from lowering.plan.nodes import Graph, HostNode, KernelNode, LibraryNode, MemcpyNode
from lowering.plan.plan import Plan
from tracegraph.ir.callbacks import HostCall, HostFunction
from tracegraph.ir.effects import Failure, PrintFormat
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis, Compare, const
from tracegraph.ir.scalar_values import AsIndex, Load
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor
from tracegraph.user_source import Source

VECTOR = ArrayType("float64", (1000,))
MATRIX = ArrayType("float32", (8, 8))
SCALAR = ArrayType("int64", ())
LINE = (Source("model.py", 7, "step"),)


def copy_kernel(target, source, name="copy"):
    axes = tuple(Axis.make(i, n) for i, n in enumerate(target.type.shape))
    store = Store(target, axes, Load.make(source, axes, None))
    return KernelNode(Kernel(name, (MapNest(target.type.shape, (store,)),)), LINE)


def condition_kernel(condition, counter, name="test"):
    """Sets a condition from an int64 scalar, which it also writes back."""
    value = Load.make(counter, (), None)
    nest = MapNest(
        (),
        (Store(counter, (), value),),
        (SetCondition(condition, value),),
    )
    return KernelNode(Kernel(name, (nest,)), LINE)


def plan(nodes, edges, inputs, outputs, scratch=(), constants=(), conditions=0, name="plan"):
    offsets, size = {}, 0
    for buffer in scratch:
        offsets[buffer] = size
        size += -(-buffer.type.nbytes // 256) * 256
    return Plan(
        name,
        Graph(tuple(nodes), frozenset(edges)),
        tuple(inputs),
        tuple(outputs),
        tuple(constants),
        offsets,
        size,
        conditions,
    )


def copy_plan():
    """One kernel, and no scratch memory, which is shared."""
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    return plan([copy_kernel(y, x)], set(), [x], [y], name="copy")


def in_place_plan():
    """One kernel, over its argument."""
    x = Buffer("input", 0, VECTOR)
    return plan([copy_kernel(x, x)], set(), [x], [x], name="in_place")


def memory_for(made, backend):
    """Memory of a recorded device for each argument of a Plan."""
    return [backend.device.pool.buffer(buffer.type.strong()) for buffer in made.inputs]


def diamond():
    """input -> a -> (b, c) -> output, where the last kernel waits for b and c."""
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    a, b, c = (Buffer("scratch", i, VECTOR) for i in range(3))
    nodes = [
        copy_kernel(a, x, "a"),
        copy_kernel(b, a, "b"),
        copy_kernel(c, a, "c"),
        copy_kernel(y, b, "d"),
    ]
    return plan(nodes, {(0, 1), (0, 2), (1, 3), (2, 3)}, [x], [y], [a, b, c], name="diamond")


def small_input():
    """A scalar and a vector that each have one reader, and a constant."""
    s, x = Buffer("input", 0, SCALAR), Buffer("input", 1, VECTOR)
    outs = [Buffer("output", 0, SCALAR), Buffer("output", 1, VECTOR), Buffer("output", 2, VECTOR)]
    fixed = Buffer("const", 0, VECTOR)
    nodes = [
        copy_kernel(outs[0], s, "scalar"),
        copy_kernel(outs[1], x, "vector"),
        MemcpyNode(outs[2], fixed, LINE),
    ]
    data = np.arange(1000.0)
    return plan(nodes, (), [s, x], outs, constants=[(fixed, data)], name="small")


def fan():
    """Two scalars and two vectors, each read by several kernels, and four results."""
    scalars = [Buffer("input", i, SCALAR) for i in range(2)]
    vectors = [Buffer("input", i, VECTOR) for i in (2, 3)]
    outs = [Buffer("output", i, t) for i, t in enumerate((SCALAR, SCALAR, VECTOR, VECTOR))]
    pairs = [*zip(outs, [*scalars, *vectors], strict=True), (outs[0], scalars[1])]
    nodes = [copy_kernel(out, x, f"k{i}") for i, (out, x) in enumerate(pairs)]
    return plan(nodes, {(0, 4)}, [*scalars, *vectors], outs, name="fan")


def nested_loops():
    """A while loop whose body holds a while loop and an if-else, behind a switch."""
    n = Buffer("scratch", 0, SCALAR)
    y = Buffer("output", 0, SCALAR)
    inner = WhileNode(1, Graph((condition_kernel(1, n, "inner_body"),), frozenset()), LINE)
    branch = IfElseNode(
        2,
        Graph((copy_kernel(y, n, "then"),), frozenset()),
        Graph((), frozenset()),
        LINE,
    )
    body = Graph(
        (
            condition_kernel(1, n, "arm_inner"),
            inner,
            condition_kernel(2, n, "arm_branch"),
            branch,
            condition_kernel(0, n, "again"),
        ),
        frozenset({(0, 1), (1, 2), (2, 3), (3, 4)}),
    )
    nodes = [
        condition_kernel(0, n, "arm_outer"),
        WhileNode(0, body, LINE),
        condition_kernel(3, n, "arm_switch"),
        SwitchNode(
            3,
            tuple(Graph((copy_kernel(y, n, f"case{i}"),), frozenset()) for i in range(3)),
            LINE,
        ),
    ]
    return plan(nodes, {(0, 1), (1, 2), (2, 3)}, [], [y], [n], conditions=4, name="nested")


def products():
    """Two independent products at the top, and one in a loop's body."""
    x = Buffer("input", 0, ArrayType("float32", (9, 8)))
    y = Buffer("output", 0, MATRIX)
    a, p, q, r = (Buffer("scratch", i, MATRIX) for i in range(4))
    n = Buffer("scratch", 4, SCALAR)

    def matmul(target, left, right):
        operands = [MatrixOperand(b, 0, 64, 8, 1) for b in (left, right, target)]
        return LibraryNode(MatrixProduct(1, 8, 8, 8, *operands), LINE)

    body = Graph(
        (matmul(r, a, a), condition_kernel(0, n, "again")),
        frozenset({(0, 1)}),
    )
    nodes = [
        copy_kernel(a, x, "stage"),
        matmul(p, a, a),
        matmul(q, a, a),
        condition_kernel(0, n, "arm"),
        WhileNode(0, body, LINE),
        copy_kernel(y, r, "result"),
    ]
    edges = {(0, 1), (0, 2), (0, 4), (3, 4), (4, 5)}
    return plan(nodes, edges, [x], [y], [a, p, q, r, n], conditions=1, name="products")


def transforms():
    """A transform, and in a loop's body one back that overwrites what it reads."""
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    half = ArrayType("complex128", (501,))
    a, p, q = (Buffer("scratch", i, t) for i, t in enumerate((VECTOR, half, VECTOR)))
    n = Buffer("scratch", 3, SCALAR)

    def transform(name, attrs, source, target, overwrites=False):
        arrays = map(StridedArray.whole, (source, target))
        return LibraryNode(FourierTransform(get(name), attrs, *arrays, overwrites), LINE)

    body = Graph(
        (
            transform("rfft", {"rank": 1}, a, p),
            transform("irfft", {"size": 1000}, p, q, overwrites=True),
            condition_kernel(0, n, "again"),
        ),
        frozenset({(0, 1)}),
    )
    nodes = [
        copy_kernel(a, x, "stage"),
        condition_kernel(0, n, "arm"),
        WhileNode(0, body, LINE),
        copy_kernel(y, q, "result"),
    ]
    edges = {(0, 2), (1, 2), (2, 3)}
    return plan(nodes, edges, [x], [y], [a, p, q, n], conditions=1, name="transforms")


def moving_transforms():
    """A transform of an argument, and one back to a result: captured again where these are."""
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    p = Buffer("scratch", 0, ArrayType("complex128", (501,)))
    arrays = [StridedArray.whole(buffer) for buffer in (x, p, y)]
    forth = FourierTransform(get("rfft"), {"rank": 1}, *arrays[:2], False, recaptured=True)
    back = FourierTransform(get("irfft"), {"size": 1000}, *arrays[1:], True, recaptured=True)
    nodes = [LibraryNode(forth, LINE), LibraryNode(back, LINE)]
    return plan(nodes, {(0, 1)}, [x], [y], [p], name="moving_transforms")


def effects(callback=None):
    """A loop that prints, counts its steps, and checks a number behind it."""
    n = Buffer("scratch", 0, SCALAR)
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    value = Load.make(n, (), None)
    ok = Compare.make("<", AsIndex.make(value), const(3))
    again = MapNest((), (), (SetCondition(0, value), Publish(0, value)))
    show = PrintNest((), 0, (PrintedArray((), value),))
    body = Graph(
        (KernelNode(Kernel("show", (show,)), LINE), KernelNode(Kernel("again", (again,)), LINE)),
        frozenset({(0, 1)}),
    )
    check = MapNest((), (), (Require(1, ok),))
    nodes = [
        condition_kernel(0, n, "arm"),
        WhileNode(0, body, LINE),
        KernelNode(Kernel("check", (check,)), LINE),
        copy_kernel(y, x),
    ]
    made = plan(nodes, {(0, 1), (1, 2)}, [x], [y], [n], conditions=1, name="effects")
    return replace(
        made,
        monitors=(Monitor("step", 5, callback, LINE[0]),),
        failures=(Failure("StepLimitError", "too many", LINE[0]),) * 2,
        prints=(PrintFormat("n = {}", 1, (), LINE[0]),),
    )


def products_per_launch():
    """The same products, in scratch that each launch allocates."""
    return replace(products(), per_launch=True)


def callbacks(tell=lambda x: (), ask=lambda x: (x,), limit=None):
    """A call without an answer, one with an answer, and a call of a C function."""
    x, y = Buffer("input", 0, VECTOR), Buffer("output", 0, VECTOR)
    index = space_index(VECTOR.shape)
    sent = (PrintedArray(VECTOR.shape, Load.make(x, index)),)
    nodes = [
        KernelNode(Kernel("tell", (CallNest((), 0, sent),)), LINE),
        KernelNode(Kernel("ask", (CallNest((), 1, sent, results=(y,)),)), LINE),
        HostNode(HostCall("work", 1 << 40, 0, b"data", None, LINE[0]), LINE),
    ]
    made = plan(nodes, {(0, 1), (1, 2)}, [x], [y], name="callbacks")
    functions = (
        HostFunction("tell", tell, source=LINE[0]),
        HostFunction("ask", ask, (VECTOR,), ("result",), time_limit=limit, source=LINE[0]),
    )
    return replace(made, callbacks=functions)


ALL = (
    callbacks,
    diamond,
    small_input,
    nested_loops,
    products,
    products_per_launch,
    transforms,
    moving_transforms,
    effects,
)


def arguments_of(executable):
    """Arrays of zeros, as the executable takes them."""
    return [np.zeros(type_.shape, type_.dtype) for type_ in executable.plan.in_types]
