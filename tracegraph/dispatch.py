"""Entries: a call like an earlier one is recognised, run and returned by a function made for it.

An entry tests classes, dtypes and shapes one after the other, with what they must be at hand: no
key is built, hashed or looked up. Its text depends on the classes of the leaves and the form of the
results only, so that few are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tracegraph.array import Array
from tracegraph.assembling import SCOPE, Form
from tracegraph.errors import ClosedError, OutOfMemoryError
from tracegraph.residents import Resident, ticks
from tracegraph.signature import DirectKey, direct_call
from tracegraph.stages import Compiled

Entry = Callable[[tuple[Any, ...]], Any]
"""Takes the positional arguments; returns the result of the call, or MISS."""

MISS: Any = object()
"""What an entry returns for a call that is not its own: nothing was done."""

MOST_LEAVES = 32
"""Leaves up to which an entry is written out: the compiler takes 50 µs for each."""


def no_entry(args: tuple[Any, ...]) -> Any:
    """The entry of a function that was not called yet."""
    return MISS


def make_entry(
    args: tuple[Any, ...], key: DirectKey, resident: Resident, compiled: Compiled, function: str
) -> Entry:
    """The entry of calls with the direct key `key`, which `args` have.

    `compiled` is the resident's, and accepts them as they were passed. `function` names the user's
    function in messages.
    """

    def recover(compiled: Compiled, error: ClosedError | OutOfMemoryError) -> Any:
        if isinstance(error, OutOfMemoryError):
            error.function = error.function or function
        elif resident.lost(compiled):
            return MISS
        raise error  # what was closed is another one, which a callback has called

    if len(key) > MOST_LEAVES:
        return _long_entry(key, resident, recover)
    classes = tuple(x if isinstance(x, type) else type(a) for a, x in zip(args, key, strict=True))
    results = compiled.results
    form = None if compiled.donated or not results.form.written_out else results.form
    entry: Entry = _factory(classes, form)(key, resident, recover, results.kinds, results.unflatten)
    return entry


def _long_entry(
    key: DirectKey, resident: Resident, recover: Callable[[Compiled, Any], Any]
) -> Entry:
    def entry(args: tuple[Any, ...]) -> Any:
        found = direct_call(args)
        compiled = resident.compiled
        if found is None or found[0] != key or compiled is None:
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
def _factory(classes: tuple[type, ...], form: Form | None) -> Callable[..., Entry]:
    """A function (key, resident, recover, kinds, unflatten) -> the entry of leaves of some classes.

    With the form of the results, these are written out as well.
    """
    names, known, tests, leaves = [], ["pass"], ["True"], []
    for i, kind in enumerate(classes):
        name = f"x{i}"
        names.append(name)
        known.append(f"d{i}, s{i} = key[{i}]" if kind is np.ndarray else f"d{i} = key[{i}]")
        tests.append(_TESTS[kind].format(x=name, i=i))
        leaves.append(f"{name}.memory" if kind is Array else name)
    passed = f"[{', '.join(leaves)}]"
    run, returned = f"return compiled.run_leaves(args, {passed})", ""
    if form is not None:
        known.append(form.head)
        run = f"{form.results} = compiled.executable.launch({passed})"
        returned = "\n        ".join(form.lines)
    text = f"""
def factory(key, resident, recover, kinds, unflatten):
    {"; ".join(known)}
    def entry(args):
        if len(args) != {len(classes)}:
            return MISS
        [{", ".join(names)}] = args
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
        **SCOPE,
        "ndarray": np.ndarray,
        "MISS": MISS,
        "ClosedError": ClosedError,
        "OutOfMemoryError": OutOfMemoryError,
        "ticks": ticks,
    }
    exec(compile(text, "<calls of a jitted function>", "exec"), scope)
    factory: Callable[..., Entry] = scope["factory"]
    return factory
