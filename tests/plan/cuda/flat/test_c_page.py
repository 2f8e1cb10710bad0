"""docs/c.md: its program in C compiles, and runs the file that its Python writes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.plan.cuda.flat.conftest import SOURCES, CProgram

PAGE = Path(__file__).parents[4] / "docs" / "c.md"


def test_the_program_of_the_page_runs(c_program: Callable[..., CProgram], tmp_path: Path) -> None:
    text = PAGE.read_text("utf-8")
    names: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)[0], names)
    (code,) = re.findall(r"^```c\n(.*?)^```$", text, re.M | re.S)
    source = tmp_path / "main.c"
    source.write_text(code)
    main = c_program(source, f"-I{SOURCES / 'include'}")
    found = subprocess.run([main.path], cwd=names["folder"].name, capture_output=True, text=True)
    names["folder"].cleanup()
    assert (found.stdout, found.stderr) == ("relax: 0 steps, 0.000000 in the middle\n", "")
    header = names["exported"].c_loader().read_text("utf-8").partition("#ifdef TG_IMPL")[0]
    declared = set(re.findall(r"\b(tg_\w+)\(", header.partition("#ifndef")[2]))
    told = set(re.findall(r"\b(tg_\w+)\(", text))
    assert told == declared - {"tg_input_count", "tg_output_count"}
