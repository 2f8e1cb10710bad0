"""Prepared calls: what an earlier call with tensors of the same types has found out.

Such a call looks at dtypes, shapes and addresses, allocates results, and launches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch

from tracegraph import tree
from tracegraph.errors import ClosedError
from tracegraph.interop.flat_functions import FlatFunction


class KnownTensorCall(NamedTuple):
    """A program that is compiled, its call by addresses, and the shapes and dtypes of results.

    It is valid while `cached` holds what was `compiled`.
    """

    cached: Any
    compiled: Any
    launch: Callable[[list[int], Sequence[tuple[int, Any]]], bool]
    results: Sequence[tuple[tuple[int, ...], torch.dtype]]


def prepare(
    function: FlatFunction, values: Sequence[Any], device: torch.device, call: KnownTensorCall
) -> None:
    """Keep a call for values of the same types, if they are numbers and contiguous tensors on the
    device.
    """
    known = _known(values, device)
    if known is not None and not (known[2] and call.compiled.ranges):
        function.known[known[0]] = call


def run_prepared(
    function: FlatFunction, values: Sequence[Any], device: torch.device
) -> tuple[tuple[torch.Tensor, ...], tree.Structure] | None:
    """The leaves of the results and their structure; None if there is no such call, or it cannot be
    made now.

    PyTorch's current stream is the legacy default one, and no mode is entered.
    """
    known = _known(values, device)
    call: KnownTensorCall | None = None if known is None else function.known.get(known[0])
    if known is None or call is None:
        return None
    key, addresses, numbers = known
    if call.cached.compiled is not call.compiled:
        function.known.pop(key, None)
        return None
    tensors = tuple([torch.empty(s, dtype=dtype, device=device) for s, dtype in call.results])
    addresses += [x.data_ptr() for x in tensors]
    try:
        if not call.launch(addresses, numbers):
            return None
    except ClosedError:
        return None  # the general call builds it again
    call.cached.used = time.perf_counter()
    return tensors, call.compiled.out_structure


_CLASSES = frozenset({torch.Tensor, torch.nn.Parameter})
_NUMBERS = frozenset({bool, int, float, complex})

Known = tuple[Hashable, list[int], list[tuple[int, Any]]]
"""The key of a call, the addresses of its tensors, and its numbers with their positions."""


def _known(values: Sequence[Any], device: torch.device) -> Known | None:
    """What a call is known by; None if it has others than numbers and contiguous tensors."""
    key: list[Any] = ["call", device.index]
    addresses, numbers = [], []
    for position, x in enumerate(values):
        kind = type(x)
        if kind in _NUMBERS:
            if kind is int and not -(2**63) <= x < 2**63:
                return None
            key.append(kind)
            addresses.append(0)
            numbers.append((position, x))
            continue
        if kind not in _CLASSES or not x.is_cuda or x.layout is not torch.strided:
            return None
        if x.get_device() != device.index or not x.is_contiguous() or x.is_conj() or x.is_neg():
            return None
        key += x.dtype, x.shape
        addresses.append(x.data_ptr())
    return tuple(key), addresses, numbers
