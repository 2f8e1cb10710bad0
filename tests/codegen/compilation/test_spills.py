"""No kernel reads a spilled value from a place that the compiler has given to another one.

NVRTC 13.0 to 13.5 do so with a value that has no definition on some path, as one that is set in a
condition and read in a later one. `SourceWriter.variable` begins with zeros for this reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import CASES
from tests.emulation.machine_code import lost_spills, sections
from tests.emulation.plan_emulator import common_unit
from tests.helpers.running import lowered

KEPT = "/*0000*/ STL.64 [R1+0x10], R2 ;"
SPILLING = ("stabilised_bi_conjugate_gradients", "passes_over_a_row_that_replace_what_they_read")
"""Programs with more values in a kernel than there are registers: both gave wrong results."""


@pytest.mark.parametrize("architecture", ["sm_90", "sm_100"])
def test_spilled_values_are_kept(architecture: str, tmp_path: Path) -> None:
    cases = [CASES[name] for name in SPILLING]
    plans = [lowered(c.function, *c.arguments, device="cuda").plan for c in cases]
    kernels = dict(sections(common_unit(plans).source, architecture, tmp_path))
    assert len(kernels) > len(SPILLING)
    lost = {name: lost_spills(section) for name, section in kernels.items()}
    assert not any(lost.values()), lost


@pytest.mark.parametrize(
    ("between", "lost"),
    [
        ("", 0),
        ("/*0010*/ LDL.LU.64 R4, [R1+0x10] ;", 1),
        ("/*0010*/ LDL.LU R4, [R1+0x14] ;", 1),
        ("/*0010*/ LDL.LU.64 R4, [R1+0x18] ;", 0),
        ("/*0010*/ LDL.LU.64 R4, [R1+0x10] ;\n/*0020*/ STL.64 [R1+0x10], R6 ;", 0),
        ("/*0010*/ LDL.LU.64 R4, [R1+0x10] ;\n/*0020*/ @P0 STL.64 [R1+0x10], R6 ;", 1),
        ("/*0010*/ @P0 BRA `(.L_x_1) ;\n/*0020*/ LDL.LU R4, [R1+0x10] ;\n.L_x_1:", 1),
        ("/*0010*/ BRA `(.L_x_1) ;\n/*0020*/ LDL.LU R4, [R1+0x10] ;\n.L_x_1:", 0),
        ("/*0010*/ @P0 EXIT ;\n/*0020*/ LDL.LU R4, [R1+0x10] ;", 1),
        ("/*0010*/ EXIT ;\n/*0020*/ LDL.LU R4, [R1+0x10] ;", 0),
    ],
)
def test_a_value_is_lost_after_the_last_load_of_its_place(between: str, lost: int) -> None:
    load = "/*0030*/ LDL.64 R40, [R1+0x10]  (*SpillRefill*);"
    assert len(lost_spills(f"{KEPT}\n{between}\n{load}\n/*0040*/ EXIT ;")) == lost


def test_a_value_is_lost_in_a_loop_and_a_function() -> None:
    last = "/*0010*/ LDL.LU.64 R4, [R1+0x10] ;"
    assert lost_spills(f"{KEPT}\n.L_x_0:\n{last}\n/*0020*/ @P0 BRA `(.L_x_0) ;") == [
        "LDL.LU.64 R4, [R1+0x10]"
    ]
    called = f"$square:\n{last}\n/*0020*/ LDL.64 R4, [R1+0x10] ;\n/*0030*/ RET.REL.NODEC R2 ;"
    assert lost_spills(f"{KEPT}\n/*0008*/ EXIT ;\n{called}") == ["LDL.64 R4, [R1+0x10]"]
