"""Features: what a device's graphs can do. Each is probed once, when a Plan first uses it.

body_updates        new parameters for kernel nodes in the bodies of an executable graph
memory_nodes        nodes that allocate memory for a launch, and free it
library_updates     new parameters for kernel nodes that a library's call was captured as. Each call
                    is checked when it is captured: not probed
programmatic_edges  kernels that start before those that they depend on have ended; known by the
                    compute capability
conditional_nodes   IF-ELSE, SWITCH and WHILE nodes. Every supported driver has them: not probed

A feature can be declared missing, for tests, debugging, or against a faulty driver: by `override`,
or in the environment variable TRACEGRAPH_FEATURES, as in ``TRACEGRAPH_FEATURES="no-body-updates"``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from tracegraph.generated.dataclass import dataclass

VARIABLE = "TRACEGRAPH_FEATURES"

Feature = Literal[
    "conditional_nodes",
    "body_updates",
    "memory_nodes",
    "library_updates",
    "programmatic_edges",
]

_WORDS: Mapping[str, Feature] = {f"no-{each.replace('_', '-')}": each for each in get_args(Feature)}


@dataclass(frozen=True, slots=True)
class Features:
    """What graphs may hold and do. Without conditional nodes, body updates do not matter."""

    conditional_nodes: bool = True
    body_updates: bool = True
    memory_nodes: bool = True
    library_updates: bool = True
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

    >>> with override(memory_nodes=False):
    ...     declared()
    {'memory_nodes': False}
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


def setting(missing: Iterable[str]) -> str:
    """The environment variable that declares these features missing."""
    return f'{VARIABLE}="{",".join(word for word, name in _WORDS.items() if name in missing)}"'


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
    """The device's features. Those `wanted` and not declared are probed; others count as there.

    Without conditional nodes, only programmatic edges are probed.
    """
    found = declared()
    for feature in wanted:
        asked = feature == "programmatic_edges" or found.get("conditional_nodes", True)
        if asked and feature not in found:
            found[feature] = supports(feature)
    return Features(**found)
