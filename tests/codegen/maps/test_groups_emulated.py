"""Groups of points inside of all parts of a space, as vectors: generated code on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from lowering.codegen import geometry, geometry_records
from tests.comparisons.windows import RANDOM, N
from tests.emulation.emulator import COMPILER
from tests.emulation.plan_emulator import EmulatedPlans
from tests.programs.windows import NAMED, in_a_loop, program_of
from tracegraph import tree

ARRAYS = tuple(
    np.random.default_rng(seed).integers(-9, 9, (23, 32)).astype(np.float32) for seed in range(3)
)
PROGRAMS = {f.__name__: (f, (N, *ARRAYS)) for f in NAMED}
for number, steps in enumerate(RANDOM[:8]):
    PROGRAMS[f"random {number}"] = program_of(steps), (N, *ARRAYS)
    PROGRAMS[f"random {number} in a loop"] = in_a_loop(program_of(steps)), (N, *ARRAYS)


@pytest.fixture(scope="module", params=[1, 2])
def device(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmulatedPlans]:
    """Threads have as many vectors each, however small a map is."""
    if COMPILER is None:
        pytest.skip("needs g++")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(geometry_records, "MANY_THREADS", 2)
        patch.setattr(geometry, "VECTORS_PER_THREAD", request.param)
        yield EmulatedPlans(PROGRAMS, tmp_path_factory.mktemp("groups"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_write_what_numpy_writes(name: str, device: EmulatedPlans) -> None:
    function, arguments = PROGRAMS[name]
    found = device.run(name, *arguments, order=Random(0))
    for got, wanted in zip(tree.leaves(found), tree.leaves(function(*arguments)), strict=True):
        np.testing.assert_array_equal(got, wanted)
