"""Options of public functions with a value of a wrong type, or a word that is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from tracegraph import cache, distributed, errors
from tracegraph.cache import settings

LINE = tracegraph.Mesh(2, "x", device="host")
SPEC = tracegraph.PartitionSpec("x")
EXPORTED = tracegraph.export(np.sin, 1.0)
SAVED = bytes(EXPORTED)


def gathered(tiled: Any) -> Any:
    def gather(x: Any) -> Any:
        return tracegraph.all_gather(x, "i", tiled=tiled)

    return lanes(gather)


def lanes(function: Callable[..., Any]) -> Any:
    return tracegraph.vmap(function, axis_name="i")(np.ones((2, 3)))


REFUSED: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "load device": (
        lambda _: tracegraph.load(SAVED, device="gpu"),
        ValueError,
        "no backend for device 'gpu'; the backends here are 'host', 'cuda'",
    ),
    "load device number": (
        lambda _: tracegraph.load(SAVED, device="cuda:one"),
        ValueError,
        "after the colon comes a number",
    ),
    "load trusted": (
        lambda _: tracegraph.load(SAVED, trusted="no"),  # type: ignore[arg-type]
        TypeError,
        "trusted must be True or False, not 'no'",
    ),
    "on_device": (lambda _: EXPORTED.on_device(""), ValueError, "no backend for device ''"),
    "jit device": (lambda _: tracegraph.jit(np.sin, device="gpu"), ValueError, "device 'gpu'"),
    "jit static_argnums": (
        lambda _: tracegraph.jit(np.sin, static_argnums=None),  # type: ignore[call-overload]
        TypeError,
        "static_argnums: expected int or several, got None",
    ),
    "jit donate_argnames": (
        lambda _: tracegraph.jit(np.sin, donate_argnames=3),  # type: ignore[call-overload]
        TypeError,
        "donate_argnames: expected str or several, got 3",
    ),
    "export fun": (lambda _: tracegraph.export(3), TypeError, "export takes a function, got 3"),  # type: ignore[arg-type]
    "export order": (
        lambda _: tracegraph.export(np.sin, 1.0, order="one"),  # type: ignore[arg-type]
        TypeError,
        "order must be a number of derivatives, not 'one'",
    ),
    "export targets": (
        lambda _: tracegraph.export(np.sin, 1.0, targets=90),  # type: ignore[arg-type]
        TypeError,
        "targets= takes a sequence of architectures",
    ),
    "save_flat libraries": (
        lambda folder: EXPORTED.save_flat(folder / "f", "sm_90", libraries="no"),
        TypeError,
        "libraries must be True or False, not 'no'",
    ),
    "save_flat program": (
        lambda folder: EXPORTED.save_flat(folder / "f", "sm_90", program="first"),
        TypeError,
        "program must be the number of a program, not 'first'",
    ),
    "cache max_bytes": (
        lambda _: cache.set(max_bytes="1G", enabled=False),  # type: ignore[arg-type]
        TypeError,
        "max_bytes must be a number of bytes, not '1G'",
    ),
    "cache enabled": (
        lambda folder: cache.set(directory=folder, enabled="no"),
        TypeError,
        "enabled must be True or False, not 'no'",
    ),
    "Mesh shape": (
        lambda _: tracegraph.Mesh((2, True), "xy", device="host"),
        errors.ShardingError,
        "a positive number of devices for each axis",
    ),
    "Mesh axis_names": (
        lambda _: tracegraph.Mesh(2, 3, device="host"),  # type: ignore[arg-type]
        errors.ShardingError,
        "the name of an axis is a word such as 'x', not 3",
    ),
    "Mesh device": (
        lambda _: tracegraph.Mesh(2, "x", device="cuda:1"),
        errors.MeshDeviceError,
        "write device='cuda', not 'cuda:1'",
    ),
    "make_array_from_local mesh": (
        lambda _: tracegraph.make_array_from_local([np.ones(1)] * 2, 2, SPEC),  # type: ignore[arg-type]
        errors.ShardingError,
        "mesh must be a tracegraph.Mesh, not 2",
    ),
    "make_array_from_local blocks": (
        lambda _: tracegraph.make_array_from_local(2, LINE, SPEC),  # type: ignore[arg-type]
        TypeError,
        "blocks must be several arrays, not 2",
    ),
    "shard fun": (
        lambda _: tracegraph.shard(3, mesh=LINE, in_specs=SPEC, out_specs=SPEC),  # type: ignore[arg-type]
        errors.NotCallableError,
        "fun must be a function, not 3",
    ),
    "all_gather tiled": (lambda _: gathered("no"), TypeError, "tiled must be True or False"),
    "halo width": (
        lambda _: lanes(lambda x: tracegraph.halo(x, "i", width=True)),
        TypeError,
        "width must be a number of elements, not True",
    ),
    "halo boundary": (
        lambda _: lanes(lambda x: tracegraph.halo(x, "i", boundary=None)),  # type: ignore[arg-type]
        errors.ShardingError,
        'boundary is "periodic" or a number, not None',
    ),
    "scan reverse": (
        lambda _: tracegraph.scan(lambda c, x: (c, x), 0, np.ones(3), reverse="no"),  # type: ignore[arg-type]
        TypeError,
        "reverse must be True or False, not 'no'",
    ),
    "check_indices": (
        lambda _: tracegraph.check_indices("no").__enter__(),  # type: ignore[arg-type]
        TypeError,
        "check_indices takes True or False, got 'no'",
    ),
    "debug.nans": (
        lambda _: tracegraph.debug.nans("no").__enter__(),  # type: ignore[arg-type]
        TypeError,
        "infinities must be True or False, not 'no'",
    ),
    "register_dataclass name": (
        lambda _: tracegraph.register_dataclass(name=3),  # type: ignore[call-overload]
        TypeError,
        "name must be a string, not 3",
    ),
    "elementwise cost": (
        lambda _: tracegraph.elementwise(np.sin, cuda="sin({0})", cost="low"),  # type: ignore[arg-type]
        errors.CustomKernelError,
        "cost must be an integer of at least 0, not 'low'",
    ),
    "initialize address": (
        lambda _: distributed.initialize(8476),  # type: ignore[arg-type]
        TypeError,
        "coordinator_address must be 'host:port', not 8476",
    ),
    "initialize num_processes": (
        lambda _: distributed.initialize("localhost:1", "2", 0),  # type: ignore[arg-type]
        TypeError,
        "num_processes must be a number of processes, not '2'",
    ),
    "initialize local_device_ids": (
        lambda _: distributed.initialize(local_device_ids="01"),  # type: ignore[arg-type]
        TypeError,
        "local_device_ids must be numbers of GPUs, not '0'",
    ),
    "initialize broadcast": (
        lambda _: distributed.initialize(broadcast="mpi"),  # type: ignore[arg-type]
        TypeError,
        "broadcast must be a function, not 'mpi'",
    ),
    "initialize timeout": (
        lambda _: distributed.initialize(initialization_timeout=-1),
        ValueError,
        "initialization_timeout must be more than 0 seconds, not -1",
    ),
}


@pytest.fixture(autouse=True)
def kept_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No option changes what others see, and none that is refused changes anything."""
    monkeypatch.setattr(settings, "chosen", settings.CacheSettings())
    yield
    assert settings.chosen == settings.CacheSettings()


@pytest.mark.parametrize("option", REFUSED)
def test_it_is_refused_at_once_and_by_name(option: str, tmp_path: Path) -> None:
    call, error, message = REFUSED[option]
    with pytest.raises(error) as raised:
        call(tmp_path)
    assert message in str(raised.value)
