"""The special cases of the array API standard hold on a device, too."""

from __future__ import annotations

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.array_api import SPECIAL, arguments_of, assert_special


@pytest.mark.parametrize("dtype", SPECIAL)
def test_special_cases(dtype):
    """All functions of a dtype are one program."""
    tables = SPECIAL[dtype]
    arrays = {name: arguments_of(cases, dtype) for name, cases in tables.items()}

    @tracegraph.jit(device="cuda")
    def all_functions(arrays):
        return {name: getattr(tnp, name)(*given) for name, given in arrays.items()}

    with np.errstate(all="ignore"):
        found = all_functions(arrays)
    wrong = []
    for name, cases in tables.items():
        try:
            assert_special(name, cases, np.asarray(found[name]))
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)
