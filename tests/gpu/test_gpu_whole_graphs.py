"""What users can ask of whole graphs, on a device."""

import numpy as np
import pytest

import tracegraph

pytestmark = pytest.mark.gpu


def test_a_supported_driver_has_all_but_what_the_device_lacks():
    found = tracegraph.features("cuda")
    print(found)
    modern = found.compute_capability >= (9, 0)
    assert found.cuda_version >= (13, 0)
    assert found.conditional_nodes
    assert found.cooperative_launches
    assert found.clusters == modern
    assert found.programmatic_edges == modern
    assert found == tracegraph.features("cuda:0")


def test_probes_leave_the_device_usable():
    tracegraph.features("cuda")
    double = tracegraph.jit(lambda x: 2 * x, device="cuda")
    np.testing.assert_array_equal(np.asarray(double(np.arange(3.0))), [0, 2, 4])
