"""export: a function of arrays as the programs that it is traced to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

from tracegraph.errors import UnsavableError
from tracegraph.errors.keywords import required_int
from tracegraph.errors.tracebacks import entry_point
from tracegraph.errors.wording import value_text
from tracegraph.ir.stored.writing import program_to_json
from tracegraph.saving.entries import SavedProgram
from tracegraph.saving.exported import Exported, require_architecture
from tracegraph.saving.functions.writing import FunctionsWriter
from tracegraph.sharding.shard import ShardedFunction
from tracegraph.staging.calls.call_tracing import trace_call
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.jitted import Jitted
from tracegraph.tracing.trace import current_trace


@entry_point
def export(
    fun: Callable[..., Any],
    /,
    *args: Any,
    order: int = 0,
    signatures: Sequence[tuple[Any, ...]] = (),
    targets: Sequence[str] = (),
    **kwargs: Any,
) -> Exported:
    """The programs of a function for the types of these arguments, which can be saved to a file.

    A program is data: operations, types and constants, with the names of the user's lines. It
    depends on no device and no Python code, and gives the same bits as `jit` of the function.
    `tracegraph.save` writes it, and `tracegraph.load` reads it in another process.

    Args:
        fun: a function, or a jitted one, whose static and donated arguments are kept.
        *args: arrays, numbers or `ArrayType`s, and trees of them.
        order: how often functions with rules of their own, by `custom_jvp`, `custom_vjp` and the
            like, can be differentiated: their rules are traced that often. All other functions can
            be differentiated without it.
        signatures: further arguments by position, each a tuple, with a program each. Calls take the
            program of their types.
        targets: architectures of GPUs, such as ``"sm_90"``, to compile for now; as `add_target` of
            the result does it.
        **kwargs: arguments by name.

    Raises:
        UnsavableError: the function calls back Python, or has a kernel that was compiled before or
            includes headers of the user's, or runs on a mesh; or an argument has a class without a
            name. Also what `Exported.add_target` refuses. The message has the line.
        UnsupportedArgumentError: an argument has a leaf that is not an array, number or type.
        KernelResultError: the reference of a kernel returns something else than is declared.
        TypeError: `targets` is one string, `signatures` are no tuples, `fun` is no function, or
            `order` no integer.
        ValueError: `order` is negative, or an architecture none.

    >>> import numpy as np
    >>> import tracegraph
    >>> f64 = tracegraph.ArrayType("float64", (3,))
    >>> exported = tracegraph.export(lambda x, y: x * y + 1, f64, f64)
    >>> again = tracegraph.load(bytes(exported))
    >>> again(np.arange(3.0), np.ones(3))
    Array([1., 2., 3.], dtype=float64)
    """
    from tracegraph.saving.functions.portable import portable  # it imports all that traces

    if isinstance(fun, (Jitted, Exported)):
        signature = fun.signature
    else:
        signature = Signature.of(fun, taken_by="export")
    inner = fun.function if isinstance(fun, Jitted) else fun
    archs = _architectures(targets)
    further = _argument_lists(signatures)
    if required_int("order", order, "a number of derivatives") < 0:
        raise ValueError(f"order= says how often to differentiate: 0 or more, not {order}")
    if isinstance(inner, ShardedFunction):
        raise UnsavableError(
            f"{signature.function} runs on the devices of {inner.mesh}, which a file cannot name; "
            "export the function inside, and shard what is loaded"
        )
    traced = _differentiated(inner, order)
    calls = [(args, kwargs)] if args or kwargs or not further else []
    calls += [(tuple(each), {}) for each in further]
    entries = []
    for given, named in calls:
        call = signature.bind(given, named, abstract=True)
        found = trace_call(traced, signature, call.key, "host")
        program = portable(found.optimized, order)
        program_to_json(program, FunctionsWriter().number)  # refuses what is not saved
        entries.append(SavedProgram.of(program, call.key, found.out_structure))
    name = getattr(inner, "__name__", type(inner).__name__)
    exported = Exported(name, signature, entries)
    for arch in archs:
        exported.add_target(arch)
    return exported


def _architectures(targets: Any) -> list[str]:
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise TypeError(
            "targets= takes a sequence of architectures, such as ('sm_90',), not "
            f"{value_text(targets)}"
        )
    archs = list(targets)
    for arch in archs:
        require_architecture(arch)
    return archs


def _argument_lists(signatures: Any) -> list[Any]:
    found = list(signatures) if isinstance(signatures, Iterable) else [None]
    if not all(isinstance(each, (tuple, list)) for each in found):
        raise TypeError("signatures= takes a list with a tuple of arguments for each: [(x,), (y,)]")
    return found


def _differentiated(fun: Callable[..., Any], order: int) -> Callable[..., Any]:
    """The function, traced as where it is differentiated so often."""

    @wraps(fun)
    def traced(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        assert trace is not None
        trace.orders = order
        return fun(*args, **kwargs)

    return traced
