"""Patching: the addresses that calls write into the kernel nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

from lowering.buffer import Buffer
from lowering.cuda.emit import Users
from lowering.cuda.interface import KernelNodeHandle


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """The parameters of one kernel node that hold addresses of arguments and results.

    Each run is parameters that follow one another, and what picks their addresses out of all.
    """

    kernel: KernelNodeHandle
    runs: tuple[tuple[slice, Callable[[list[int]], Sequence[int]]], ...]

    def write(self, addresses: list[int]) -> None:
        """Let the next update of the node pass these addresses."""
        values = self.kernel.values
        for positions, pick in self.runs:
            values[positions] = pick(addresses)


class Patches:
    """The patches of a graph, and which of them each argument and result is in, as bits."""

    def __init__(self, buffers: Sequence[Buffer], users: Users) -> None:
        places: dict[KernelNodeHandle, dict[int, int]] = {}
        for number, buffer in enumerate(buffers):
            for kernel, position in users.get(buffer, ()):
                places.setdefault(kernel, {})[position] = number
        self._patches = [Patch(kernel, tuple(_runs(found))) for kernel, found in places.items()]
        bits = {kernel: 1 << bit for bit, kernel in enumerate(places)}
        self._bits = [
            sum({bits[kernel] for kernel, _ in users.get(buffer, ())}) for buffer in buffers
        ]
        self._always = self._patches if set(self._bits) == {1} else None

    def moved(self, before: list[int], addresses: list[int]) -> Sequence[Patch]:
        """The patches that are not the same for these addresses as for those before.

        The addresses are not the same.
        """
        if self._always is not None:  # one kernel uses all
            return self._always
        bits = 0
        for old, new, more in zip(before, addresses, self._bits, strict=True):
            if old != new:
                bits |= more
        return [patch for bit, patch in enumerate(self._patches) if bits >> bit & 1]


def _runs(places: Mapping[int, int]) -> Iterator[tuple[slice, Callable[[Any], Sequence[int]]]]:
    """Positions and what is at them, in pieces without gaps."""
    positions = sorted(places)
    starts = [0, *(i for i, (a, b) in enumerate(pairwise(positions), 1) if b > a + 1)]
    for start, stop in pairwise([*starts, len(positions)]):
        run = positions[start:stop]
        numbers = [places[position] for position in run]
        # one number would pick an int, and a slice a list
        whole = slice(numbers[0], numbers[0] + 1) if len(run) == 1 else None
        yield slice(run[0], run[-1] + 1), itemgetter(whole) if whole else itemgetter(*numbers)
