"""Flat files: what is said of their layout in Python, in C, and in CUDA's header."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from lowering.cuda.recipe.flat.c_declarations import with_declarations
from lowering.cuda.recipe.flat.flat_file import c_loader, flat_file
from lowering.cuda.recipe.flat.layout import BASES, HEADER, SECTION, SECTIONS
from lowering.cuda.recipe.recipe import Base
from tests.plan.cuda.flat.conftest import SOURCES
from tests.plan.cuda.flat.recipes import EVERY_KIND, code_of


def test_the_header_of_c_says_the_same() -> None:
    header = c_loader().read_text("utf-8")
    assert header == with_declarations(header), "run lowering.cuda.recipe.flat.c_declarations"


def test_fields_lie_without_gaps() -> None:
    for record in (HEADER, SECTION, *SECTIONS):
        aligned = np.dtype(record.dtype.descr, align=True)
        assert aligned.itemsize == record.dtype.itemsize, record.name
    assert HEADER.dtype.itemsize == 64


def test_bases_have_the_numbers_of_recipes() -> None:
    without_prints = [base for base in Base if not base.name.startswith("PRINT")]
    assert [Base[name.upper()] for name in BASES] == without_prints


def test_a_file_reads_as_arrays_of_records() -> None:
    """As any other language would."""
    file = flat_file(EVERY_KIND, code_of(EVERY_KIND), ["x", "k", "y"], ["a", "b", "c"])
    (header,) = np.frombuffer(file, HEADER.dtype, 1)
    assert (header["nbytes"], header["arch"]) == (len(file), 90)
    table = np.frombuffer(file, SECTION.dtype, header["section_count"], header["sections"])
    found = {
        record.name: np.frombuffer(file, record.dtype, at["count"], at["offset"])
        for record, at in zip(SECTIONS, table, strict=True)
    }
    text = found["text"]["byte"].tobytes()
    names = [text[at:].partition(b"\0")[0] for at in found["input"]["name"]]
    assert names == [b"x", b"k", b"y"]
    assert list(found["extent"]["extent"]) == [4, 5, 8, 20, 8, 0, 2]
    assert found["node"]["parameter_count"].sum() == len(found["parameter"])
    start, size = found["constant"]["data"][1], found["constant"]["nbytes"][1]
    assert list(found["data"]["byte"][start : start + size]) == list(range(12))


def test_structs_are_those_of_cuda(c_compiler: str) -> None:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    homes += sorted(map(str, Path("/usr/local").glob("cuda-1[3-9]*")))
    folders = [Path(home) / "include" for home in homes if home]
    folder = next((each for each in folders if (each / "cuda.h").exists()), None)
    if folder is None:
        pytest.skip("there is no cuda.h")
    source = SOURCES / "same_as_cuda.c"
    command = [c_compiler, "-fsyntax-only", f"-I{folder}", f"-I{c_loader().parent}", source]
    found = subprocess.run(command, capture_output=True, text=True)
    assert not found.returncode, found.stderr
