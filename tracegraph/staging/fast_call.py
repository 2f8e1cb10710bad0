"""Entries: a call like an earlier one is recognised, run and returned by a function made for it.

An entry tests classes, dtypes and shapes one after the other, with what they must be at hand: no
key is built, hashed or looked up. Its text depends on the classes of the leaves, how they lie in
tuples, lists and dicts, and the form of the results only, so that few are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tracegraph.arrays.array import PLACED_SCOPE, Array
from tracegraph.errors import ClosedError, OutOfMemoryError
from tracegraph.generated import define
from tracegraph.staging.executable_cache import Resident, ticks
from tracegraph.staging.nesting import Keys, Nest, Taking, nesting
from tracegraph.staging.results import Form
from tracegraph.staging.signature import DirectKey, direct_call
from tracegraph.staging.stages import Compiled

Entry = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Takes the arguments; returns the result of the call, or MISS."""

MISS: Any = object()
"""What an entry returns for a call that is not its own: nothing was done."""

MOST_LEAVES = 32
"""Leaves up to which an entry is written out: the compiler takes 50 µs for each."""


MOST_NESTED = 8
"""Calls with nested or named arguments that a function recognises: they are tried one by one."""


def no_entry(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The entry of a function that was not called yet."""
    return MISS


def make_entry(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    passed: Sequence[Any],
    resident: Resident,
    compiled: Compiled,
    function: str,
) -> Entry | None:
    """The entry of calls that are like one; None for calls that are not recognised so.

    `passed` are its leaves. `compiled` is the resident's, and accepts them as they were passed.
    `function` names the user's function in messages.
    """
    direct = direct_call(passed)
    if direct is None:
        return None
    key = direct[0]
    del direct  # its leaves would count as further owners of what is donated

    def recover(compiled: Compiled, error: ClosedError | OutOfMemoryError) -> Any:
        if isinstance(error, OutOfMemoryError):
            error.function = error.function or function
        elif resident.lost(compiled):
            return MISS
        raise error  # what was closed is another one, which a callback has called

    keys: list[Keys] = []
    lie = nesting(args, keys), nesting(kwargs, keys)
    if len(key) > MOST_LEAVES:
        flat = not kwargs and len(args) == len(key)
        return _long_entry(key, resident, recover) if flat else None
    if None in lie:
        return None
    classes = tuple(x if isinstance(x, type) else type(a) for a, x in zip(passed, key, strict=True))
    results = compiled.results
    form = None if compiled.donated or not results.form.written_out else results.form
    factory = _factory(*lie, classes, form)
    entry: Entry = factory(keys, key, resident, recover, results.kinds, results.unflatten)
    return entry


def _long_entry(
    key: DirectKey, resident: Resident, recover: Callable[[Compiled, Any], Any]
) -> Entry:
    def entry(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = direct_call(args)
        compiled = resident.compiled
        if kwargs or found is None or found[0] != key or compiled is None:
            return MISS
        resident.used = next(ticks)
        try:
            return compiled.run_leaves(args, found[1])
        except (ClosedError, OutOfMemoryError) as error:
            return recover(compiled, error)

    return entry


_TESTS = {
    np.ndarray: "type({x}) is ndarray and ({x}.dtype is d{i} or {x}.dtype == d{i})"
    " and {x}.shape == s{i}",
    Array: "type({x}) is Array and ({x}.placement is d{i} or {x}.placement == d{i})",
    int: f"type({{x}}) is int and {-(2**63)} <= {{x}} < {2**63}",
    float: "type({x}) is float",
    bool: "type({x}) is bool",
    complex: "type({x}) is complex",
}


@lru_cache(1024)
def _factory(
    arguments: Nest, keywords: Nest, classes: tuple[type, ...], form: Form | None
) -> Callable[..., Entry]:
    """A function (keys, key, resident, recover, kinds, unflatten) -> the entry of calls of a kind.

    Their arguments lie so, with leaves of these classes. With the form of the results, these are
    written out as well.
    """
    taking = Taking()
    taking.call(arguments, keywords)
    known, tests, leaves = taking.known, ["True"], []
    for i, (name, kind) in enumerate(zip(taking.leaves, classes, strict=True)):
        known.append(f"d{i}, s{i} = key[{i}]" if kind is np.ndarray else f"d{i} = key[{i}]")
        tests.append(_TESTS[kind].format(x=name, i=i))
        leaves.append(f"{name}.memory" if kind is Array else name)
    passed = f"[{', '.join(leaves)}]"
    run = f"return compiled.run_leaves([{', '.join(taking.leaves)}], {passed})"
    returned = ""
    if form is not None:
        known.append(form.head)
        run = f"{form.results} = compiled.executable.launch({passed})"
        returned = "\n        ".join(form.lines)
    text = f"""
def factory(keys, key, resident, recover, kinds, unflatten):
    {"; ".join(known)}
    def entry(args, kwargs):
        {f"{chr(10)}        ".join(taking.lines)}
        if not ({" and ".join(tests)}):
            return MISS
        compiled = resident.compiled
        if compiled is None:
            return MISS
        resident.used = next(ticks)
        try:
            {run}
        except (ClosedError, OutOfMemoryError) as error:
            return recover(compiled, error)
        {returned}
    return entry
"""
    scope = {
        **PLACED_SCOPE,
        "ndarray": np.ndarray,
        "MISS": MISS,
        "ClosedError": ClosedError,
        "OutOfMemoryError": OutOfMemoryError,
        "ticks": ticks,
    }
    return define(text, "factory", "calls of a jitted function", scope)
