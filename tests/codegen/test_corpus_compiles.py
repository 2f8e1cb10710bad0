"""The CUDA source of every corpus program, and of random ones, compiles; no GPU is needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from corpus import CASES
from hypothesis import given, settings
from running import lowered

from lowering.cuda.compile import cubin
from tracegraph.testing import RandomProgram, programs

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("TRACEGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
    yield
    patch.undo()


@pytest.mark.parametrize("name", CASES)
def test_source_compiles(name: str) -> None:
    source = lowered(CASES[name].function, *CASES[name].arguments).source
    for architecture in ARCHITECTURES:
        assert len(cubin(source, architecture).code) > 0


@settings(max_examples=20)
@given(program=programs())
def test_random_source_compiles(program: RandomProgram) -> None:
    source = lowered(program.function, *program.arguments).source
    assert len(cubin(source, "sm_90").code) > 0
