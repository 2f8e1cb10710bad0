"""The kernels that `tracegraph.features` tries a device with compile for every architecture."""

import pytest

pytest.importorskip("cuda.core")

from lowering.codegen.preamble import preamble
from lowering.cuda.compilation import device_report
from lowering.cuda.compilation.compile import cubin


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_the_source_of_the_report(arch):
    source = preamble(device_report._SOURCE) + device_report._SOURCE
    code = cubin(source, arch)
    for name in (device_report._ARM, device_report._REST):
        assert name.encode() in code.code
