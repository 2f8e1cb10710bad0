"""The examples of docs/interop.md on a GPU, with the libraries that they name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pages.interop_page import CHECKS, names


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return names()


@pytest.mark.parametrize("covered", CHECKS, ids=" ".join)
def test_an_example_runs_on_the_device(covered: tuple[str, ...], page: dict[str, Any]) -> None:
    CHECKS[covered](page, "cuda")
