"""Generated kernels compile with NVRTC, without a GPU."""

from __future__ import annotations

import pytest

from lowering.codegen import unit_source
from tests.cases.kernels import folds as fold_cases  # noqa: F401 - adds its cases
from tests.cases.kernels import maps as map_cases  # noqa: F401 - adds its cases
from tests.cases.kernels import rows as row_cases  # noqa: F401 - adds its cases
from tests.cases.kernels.by_hand import plan
from tests.cases.kernels.case import CASES
from tests.emulation.front_end import assert_front_end_accepts

core = pytest.importorskip("cuda.core")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_all_cases_compile(arch: str) -> None:
    """The front end checks all, and there is machine code of every third. For sm_80, of atomics and
    one of each size of clusters: their text is another there.
    """
    unit = unit_source(plan(*(case.node for case in CASES.values())))
    if arch == "sm_80":
        clustered = {code.cluster: node for node, code in unit.kernels.items() if code.cluster > 1}
        atomic = [
            case.node
            for name, case in CASES.items()
            if name.startswith(("atomic_scatter", "folded"))
        ]
        assert atomic
        unit = unit_source(plan(*clustered.values(), *atomic))
    else:
        assert_front_end_accepts(unit.source)
        unit = unit_source(plan(*[case.node for case in CASES.values()][::3]))
    options = core.ProgramOptions(arch=arch, std="c++17", fma=False)
    cubin = core.Program(unit.source, "c++", options).compile("cubin")
    names = {code.name.encode() for code in unit.kernels.values()}
    assert names
    assert all(name in cubin.code for name in names)
