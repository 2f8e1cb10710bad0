"""The examples of docs/interop.md that need PyTorch or JAX print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tracegraph

PAGE = Path(__file__).parents[3] / "docs" / "interop.md"
BLOCKS = re.findall(
    r"^```py\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own
@pytest.mark.parametrize(("code", "printed"), BLOCKS, ids=["torch", "jax"])
def test_examples_with_other_libraries(
    code: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(code.split()[1])
    exec(compile(code, "example.py", "exec"), {"np": np, "tracegraph": tracegraph})
    assert capsys.readouterr().out == printed
