"""The kernels that `tracegraph.features` tries a device with compile for every architecture."""

import pytest

pytest.importorskip("cuda.core")

from lowering.codegen.preamble import preamble
from lowering.cuda.compile import cubin
from lowering.cuda.graph import device_report


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_100"])
def test_the_source_of_the_report(arch):
    source = preamble(device_report._SOURCE) + device_report._SOURCE
    code = cubin(source, arch)
    for name in (device_report._ARM, device_report._REST):
        assert name.encode() in code.code
