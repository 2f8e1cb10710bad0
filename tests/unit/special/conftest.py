"""What tests of special functions share: each runs by SciPy, and without."""

from __future__ import annotations

import pytest

from tracegraph.ops.special.by_numpy import scipy_if_there


@pytest.fixture(params=["SciPy", "NumPy"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of computing: by SciPy, and without."""
    if request.param == "SciPy":
        pytest.importorskip("scipy.special")
    else:
        monkeypatch.setattr(scipy_if_there, "scipy_special", lambda: None)
    return str(request.param)
