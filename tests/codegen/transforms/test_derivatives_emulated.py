"""Gradients through loops and branches, as generated CUDA C++ that runs on the CPU."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import Device
from tests.programs.gradients import PROGRAMS as GRADIENTS
from tests.programs.gradients import X
from tracegraph import grad

WAYS = ("as_estimated", "both", "one_kernel", "cluster", "grid")


PROGRAMS = {p.__name__: (grad(p), (X,)) for p in GRADIENTS}


@pytest.mark.parametrize("program", GRADIENTS, ids=lambda p: p.__name__)
def test_gradient_is_that_of_the_host(program: Any, device: Device) -> None:
    found = device.run(program.__name__, X, order=Random(program.__name__))
    np.testing.assert_allclose(np.asarray(found), grad(program)(X), 1e-12, 1e-12)
