"""Everything in this folder needs a GPU, and is skipped where there is none.

Tests that are marked `mesh` need two, and are not part of those that one GPU runs.
"""

import gc
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import tracegraph
from tests.helpers.devices import jitted_for

FOLDER = Path(__file__).parent

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX leaves memory to others

MANY = 500
"""Tests of a session for which starting other processes is worth it."""

COMPILES_AHEAD = "TRACEGRAPH_TESTS_COMPILE_AHEAD"
"""The variable that tells these processes not to start others."""


@cache
def missing():
    """Why there is no usable GPU, or None."""
    try:
        from cuda.core import Device

        Device(0).set_current()
    except Exception as error:
        return f"no usable GPU: {error}"
    return None


@cache
def missing_of_mesh():
    """Why there is no mesh of two GPUs, or None."""
    if missing():
        return missing()
    from cuda.core import Device

    if len(Device.get_all_devices()) < 2:
        return "a mesh needs two GPUs"
    return None if find_spec("nccl") else "a mesh needs nccl4py, of the extra mesh"


if "PYTEST_XDIST_WORKER" in os.environ and missing():
    collect_ignore_glob = ["test_*.py"]  # thousands of skips would take a part of the run


@pytest.fixture(scope="session", autouse=True)
def compiled_ahead(request):
    """What the folder compiles, by several processes, where one process runs most of it."""
    one_of_several = {"PYTEST_XDIST_WORKER", COMPILES_AHEAD} & os.environ.keys()
    if missing() or len(request.session.items) < MANY or one_of_several:
        return
    from lowering.cuda.open_devices import open_device

    device, processes = open_device(0), min(os.cpu_count() or 1, 16)
    given = [device.driver.arch, str(device.compilers), str(processes)]
    given.append(request.config.option.markexpr)
    subprocess.run(
        [sys.executable, "-O", str(FOLDER / "compile_ahead.py"), *given],
        stdout=subprocess.DEVNULL,
        env=os.environ | {COMPILES_AHEAD: "1"},
        check=False,
    )


device = jitted_for("cuda")


@pytest.fixture
def stream():
    """A stream of cuda.core."""
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    return device.create_stream()


@pytest.fixture
def fresh():
    """Nothing is left of other tests, nor of this one."""
    gc.collect()
    tracegraph.reset()
    yield
    tracegraph.memory.set_budget(None)
    gc.collect()
    tracegraph.reset()


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER not in item.path.parents:
            continue
        if item.get_closest_marker("mesh"):
            if missing_of_mesh():
                item.add_marker(pytest.mark.skip(reason=missing_of_mesh()))
        else:
            item.add_marker(pytest.mark.gpu)
            if missing():
                item.add_marker(pytest.mark.skip(reason=missing()))
