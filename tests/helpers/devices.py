"""The device of a comparison: programs of a module run on the host, in the emulator or on a GPU.

A module of cases has PROGRAMS, functions with their arguments by name, and tests that take the
fixture `device` and call `device.run(name, *arguments)`. A test file of a folder imports both: its
conftest says which device that is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, Protocol

import numpy as np
import pytest

import tracegraph
from tracegraph import tree

Programs = Mapping[str, tuple[Callable[..., Any], Sequence[Any]]]
"""Functions with arguments that they are compiled for, by name."""


class Device(Protocol):
    """What runs programs; the last one ran `times`. Functions in `inexact` have fewer digits than a
    GPU's.
    """

    inexact: Collection[str]
    times: int

    def run(self, name: str, *arguments: Any, order: Random | None = None) -> Any:
        """The results as NumPy arrays; an `order` is one of nodes that the edges allow."""


class Jitted:
    """The public way; the order of nodes is that of the backend."""

    inexact: Collection[str] = ()
    times = 2

    def __init__(self, programs: Programs, device: str) -> None:
        self._jitted = {name: tracegraph.jit(f, device=device) for name, (f, _) in programs.items()}

    def run(self, name: str, *arguments: Any, order: Random | None = None) -> Any:
        """Twice, so that the second call updates what the first has built."""
        first, second = (tree.map(np.asarray, self._jitted[name](*arguments)) for _ in range(2))
        for one, other in zip(*map(tree.leaves, (first, second)), strict=True):
            assert one.tobytes() == other.tobytes(), "the second call differs"
        return second


def jitted_for(device: str) -> Any:
    """The fixture `device` of a folder whose modules run on this one."""

    @pytest.fixture(scope="module", name="device")
    def fixture(request: pytest.FixtureRequest) -> Device:
        return Jitted(request.module.PROGRAMS, device)

    return fixture
