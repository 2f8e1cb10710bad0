"""What the tests of code generation share: an empty cache of compiled kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lowering.cuda.compilation.compile import CACHE_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _empty_kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """So that sources are compiled, and not found in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.mktemp("kernels")))
        yield
