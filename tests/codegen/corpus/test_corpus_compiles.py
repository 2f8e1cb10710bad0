"""The CUDA source of predicated nests and of random programs compiles; no GPU is needed.

That of the corpus is compiled in `test_kernels_wait`, which also reads the machine code.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from lowering.codegen import unit_source
from lowering.cuda.compilation.compile import cubin
from tests.cases.kernels.by_hand import plan
from tests.codegen.scheduling.test_schedules_emulated import NODES
from tests.corpus import CASES
from tests.emulation.plan_emulator import common_unit
from tests.helpers.forced import FORCED, scheduled
from tests.helpers.running import lowered
from tracegraph.testing import RandomProgram, programs

SCHEDULED = ("captures_at_depth_three", "scan_of_scans", "switch_on_2")
"""Programs whose loops are unrolled and branches predicated; the emulator runs all of them."""


@pytest.mark.parametrize("name", SCHEDULED)
def test_predicated_and_unrolled_programs_compile(name: str) -> None:
    stage = lowered(CASES[name].function, *CASES[name].arguments)
    source = common_unit([scheduled(stage, FORCED["both"])]).source
    assert source.count(") return;\n") > 1
    assert len(cubin(source, "sm_90").code) > 0


def test_every_kind_of_nest_compiles_with_predicates() -> None:
    source = unit_source(plan(*NODES.values())).source
    assert source.count(") return;\n") >= len(NODES)
    assert len(cubin(source, "sm_90").code) > 0


@settings(max_examples=20)
@given(program=programs())
def test_random_source_compiles(program: RandomProgram) -> None:
    source = lowered(program.function, *program.arguments, device="cuda").source
    assert len(cubin(source, "sm_90").code) > 0
