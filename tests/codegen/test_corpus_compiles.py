"""The CUDA source of all corpus programs, and of random ones, compiles; no GPU is needed.

The corpus is one unit, which NVRTC compiles twenty times faster than its programs one by one.
Kernels are named after their programs, so that the compiler's log says which is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from corpus import CASES
from emulated_plans import common_unit
from forced import FORCED, scheduled, unscheduled
from hypothesis import given, settings
from running import lowered

from lowering.cuda.compile import cubin
from tracegraph.testing import RandomProgram, programs


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setenv("TRACEGRAPH_CACHE_DIR", str(tmp_path_factory.mktemp("kernels")))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def corpus_source() -> str:
    return common_unit(
        [lowered(c.function, *c.arguments, device="cuda").plan for c in CASES.values()]
    ).source


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_corpus_compiles(architecture: str, corpus_source: str) -> None:
    code = cubin(corpus_source, architecture).code
    assert b"softmax" in code
    assert b"scan_of_scans" in code


def test_predicated_and_unrolled_programs_compile() -> None:
    plans = [unscheduled(lowered(c.function, *c.arguments)) for c in CASES.values()]
    branching = [plan for plan in plans if any(node.bodies for node in plan.graph.nodes)]
    source = common_unit([scheduled(plan, FORCED["both"]) for plan in branching]).source
    assert source.count(") return;\n") > len(branching)
    assert len(cubin(source, "sm_90").code) > 0


@settings(max_examples=20)
@given(program=programs())
def test_random_source_compiles(program: RandomProgram) -> None:
    source = lowered(program.function, *program.arguments, device="cuda").source
    assert len(cubin(source, "sm_90").code) > 0
