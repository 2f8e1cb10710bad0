"""What a device's graphs can do: found by trying, and only where a Plan needs it.

else_branches       an IF node with a second body for false
switch_nodes        SWITCH nodes
body_updates        new parameters for kernel nodes inside bodies of an executable graph
memory_nodes        nodes that allocate memory for the launch, and free it
programmatic_edges  kernels that are put on the device before those that they wait for have ended:
                    known by the compute capability
conditional_nodes   IF and WHILE nodes, on which the first three build

Each can be declared missing, for tests and against a faulty driver: by `override`, or in the
environment variable TRACEGRAPH_FEATURES, as in ``TRACEGRAPH_FEATURES="no-else,no-switch"``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

VARIABLE = "TRACEGRAPH_FEATURES"

Feature = Literal[
    "conditional_nodes",
    "else_branches",
    "switch_nodes",
    "body_updates",
    "memory_nodes",
    "programmatic_edges",
]

_WORDS: Mapping[str, Feature] = {
    "no-conditional-nodes": "conditional_nodes",
    "no-else": "else_branches",
    "no-switch": "switch_nodes",
    "no-body-updates": "body_updates",
    "no-memory-nodes": "memory_nodes",
    "no-programmatic-edges": "programmatic_edges",
}


@dataclass(frozen=True, slots=True)
class Features:
    """What graphs may hold and do. Without conditional nodes those in bodies do not matter."""

    conditional_nodes: bool = True
    else_branches: bool = True
    switch_nodes: bool = True
    body_updates: bool = True
    memory_nodes: bool = True
    programmatic_edges: bool = True


_overridden: ContextVar[Mapping[Feature, bool]] = ContextVar(
    "overridden",
    default={},  # noqa: B039 - never changed
)


@contextmanager
def override(**flags: bool) -> Iterator[None]:
    """Within the context, take the named fields of `Features` as given, whatever the device has.

    It goes before the environment variable, and concerns Plans that are compiled meanwhile.

    Raises:
        TypeError: there is no such feature.

    >>> with override(switch_nodes=False):
    ...     declared()
    {'switch_nodes': False}
    """
    names: dict[str, Feature] = {name: name for name in get_args(Feature)}
    unknown = [name for name in flags if name not in names]
    if unknown:
        raise TypeError(f"no feature {', '.join(unknown)}; the features are {', '.join(names)}")
    given = {names[name]: flag for name, flag in flags.items()}
    token = _overridden.set({**_overridden.get(), **given})
    try:
        yield
    finally:
        _overridden.reset(token)


def declared() -> dict[Feature, bool]:
    """The features that need no probe: those overridden, here or in the environment.

    Raises:
        ValueError: the environment variable has a word that means nothing.
    """
    words = [word.strip() for word in os.environ.get(VARIABLE, "").split(",") if word.strip()]
    unknown = [word for word in words if word not in _WORDS]
    if unknown:
        raise ValueError(
            f"{VARIABLE} has {', '.join(map(repr, unknown))}; it takes a list, separated by "
            f"commas, of {', '.join(_WORDS)}"
        )
    return {**{_WORDS[word]: False for word in words}, **_overridden.get()}


def probed(wanted: Iterable[Feature], supports: Callable[[Feature], bool]) -> Features:
    """The features, of which only those `wanted` and not declared are asked of the device.

    Those that nobody wants are taken to be there. Without conditional nodes, others of graphs that
    have them are not asked.
    """
    found = declared()
    for feature in wanted:
        asked = feature == "programmatic_edges" or found.get("conditional_nodes", True)
        if asked and feature not in found:
            found[feature] = supports(feature)
    return Features(**found)
