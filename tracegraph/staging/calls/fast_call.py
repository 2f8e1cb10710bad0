"""Fast calls: a generated function recognises a call like an earlier one, and launches.

It compares classes, dtypes and shapes with constants, one after the other. No key is built, hashed
or looked up. Its text depends only on the layout of the arguments, the classes of the leaves and
the form of the results, so few texts are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracegraph.arrays.array import PLACED_SCOPE, Array
from tracegraph.errors import ClosedError, OutOfMemoryError
from tracegraph.generated.functions import define
from tracegraph.ir.argument_ranges import INT64
from tracegraph.staging.calls.argument_layout import Container, Keys, Unpacking, layout_of
from tracegraph.staging.calls.clock import clock
from tracegraph.staging.calls.results import ResultsForm
from tracegraph.staging.calls.signature import DirectKey, direct_call
from tracegraph.staging.executable_cache import CachedExecutable
from tracegraph.staging.stages import Compiled

FastCall = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Takes the arguments of a call; returns its result, or MISS."""

MISS: Any = object()
"""What a fast call returns if the arguments are of another kind. Then it has done nothing."""

MOST_LEAVES = 32
"""Leaves up to which the function is generated: compiling takes 50 µs a leaf."""


MOST_NESTED = 8
"""Fast calls with nested or named arguments that a function keeps: they are tried in turn."""


def no_fast_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The fast call of a function that has not been called yet."""
    return MISS


def make_fast_call(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    passed: Sequence[Any],
    cached: CachedExecutable,
    compiled: Compiled,
    function: str,
) -> FastCall | None:
    """The fast call for calls like this one; None if such calls cannot be recognised.

    `passed` are the leaves. `compiled` is what `cached` holds, and takes the leaves as they are.
    `function` is the user's function, for messages.
    """
    direct = direct_call(passed)
    if direct is None:
        return None
    key = direct[0]
    del direct  # its leaves would count as further owners of what is donated

    def recover(compiled: Compiled, error: ClosedError | OutOfMemoryError) -> Any:
        if isinstance(error, OutOfMemoryError):
            error.function = error.function or function
        elif cached.lost(compiled):
            return MISS
        raise error  # a callback has called another executable, which was closed

    keys: list[Keys] = []
    layouts = layout_of(args, keys), layout_of(kwargs, keys)
    if len(key) > MOST_LEAVES:
        flat = not kwargs and len(args) == len(key)
        return _long_call(key, cached, recover) if flat else None
    if None in layouts:
        return None
    ranges = {each.position: each.values for each in compiled.ranges}
    kinds = tuple(
        ranges.get(i, INT64) if x is int else x if isinstance(x, type) else type(passed[i])
        for i, x in enumerate(key)
    )
    results = compiled.results
    form = None if compiled.donated or not results.form.written_out else results.form
    factory = _factory(*layouts, kinds, form)
    call: FastCall = factory(keys, key, cached, recover, results.kinds, results.unflatten)
    return call


def _long_call(
    key: DirectKey, cached: CachedExecutable, recover: Callable[[Compiled, Any], Any]
) -> FastCall:
    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = direct_call(args)
        compiled = cached.compiled
        if kwargs or found is None or found[0] != key or compiled is None:
            return MISS
        compiled.require_ranges(found[1])
        cached.used = clock()
        try:
            return compiled.run_leaves(args, found[1])
        except (ClosedError, OutOfMemoryError) as error:
            return recover(compiled, error)

    return call


_TESTS = {
    np.ndarray: "type({x}) is ndarray and ({x}.dtype is d{i} or {x}.dtype == d{i})"
    " and {x}.shape == s{i}",
    Array: "type({x}) is Array and ({x}.placement is d{i} or {x}.placement == d{i})",
    range: "type({x}) is int and {low} <= {x} < {end}",
    float: "type({x}) is float",
    bool: "type({x}) is bool",
    complex: "type({x}) is complex",
}


@lru_cache(1024)
def _factory(
    arguments: Container,
    keywords: Container,
    kinds: tuple[type | range, ...],
    form: ResultsForm | None,
) -> Callable[..., FastCall]:
    """A function (keys, key, cached, recover, kinds, unflatten) -> fast call.

    For arguments of this layout, with leaves of these classes, or Python ints of these ranges. With
    a form, the generated text also makes the results.
    """
    unpacking = Unpacking()
    unpacking.call(arguments, keywords)
    setup, tests, leaves = unpacking.setup, ["True"], []
    for i, (name, kind) in enumerate(zip(unpacking.leaves, kinds, strict=True)):
        setup.append(f"d{i}, s{i} = key[{i}]" if kind is np.ndarray else f"d{i} = key[{i}]")
        if isinstance(kind, range):
            tests.append(_TESTS[range].format(x=name, low=kind.start, end=kind.stop))
        else:
            tests.append(_TESTS[kind].format(x=name, i=i))
        leaves.append(f"{name}.memory" if kind is Array else name)
    passed = f"[{', '.join(leaves)}]"
    run = f"return compiled.run_leaves([{', '.join(unpacking.leaves)}], {passed})"
    returned = ""
    if form is not None:
        setup.append(form.head)
        run = f"{form.results} = compiled.executable.launch({passed})"
        returned = "\n        ".join(form.lines)
    text = f"""
def factory(keys, key, cached, recover, kinds, unflatten):
    {"; ".join(setup)}
    def call(args, kwargs):
        {f"{chr(10)}        ".join(unpacking.lines)}
        if not ({" and ".join(tests)}):
            return MISS
        compiled = cached.compiled
        if compiled is None:
            return MISS
        cached.used = clock()
        try:
            {run}
        except (ClosedError, OutOfMemoryError) as error:
            return recover(compiled, error)
        {returned}
    return call
"""
    scope = {
        **PLACED_SCOPE,
        "ndarray": np.ndarray,
        "MISS": MISS,
        "ClosedError": ClosedError,
        "OutOfMemoryError": OutOfMemoryError,
        "clock": clock,
    }
    return define(text, "factory", "calls of a jitted function", scope)
