"""What the tests of code generation share: an empty cache of compiled kernels, and the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from lowering.disk_cache.location import CACHE_VARIABLE
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.helpers.forced import FORCED, scheduled


@pytest.fixture(scope="session", autouse=True)
def _empty_kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """So that sources are compiled, and not found in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("kernels")))
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Modules with WAYS have their programs planned in each way of `FORCED` that these name."""
    ways = getattr(metafunc.module, "WAYS", ())
    if "device" in metafunc.fixturenames and ways:
        metafunc.parametrize("device", ways, indirect=True, scope="module")


@pytest.fixture(scope="module")
def device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> EmulatedPlans:
    """The emulator, with the PROGRAMS of a module compiled as one unit."""
    if COMPILER is None:
        pytest.skip("needs g++")
    programs, way = request.module.PROGRAMS, getattr(request, "param", None)
    folder = tmp_path_factory.mktemp("programs")
    if way is None:
        return EmulatedPlans(programs, folder)
    return EmulatedPlans(programs, folder, partial(scheduled, chosen=FORCED[way]))
