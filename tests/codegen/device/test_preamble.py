"""Units have the files of `device` that their kernels use, and no others."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

import lowering
from lowering.codegen.preamble import PARTS, preamble
from lowering.cuda.compilation.compile import cubin

OPTIONAL = [name for name, marks in PARTS.items() if marks]
NAME = re.compile(r"\b(?:tg|TG)_\w+")
EVERYTHING = "".join(mark for marks in PARTS.values() for mark in marks)


def text(name):
    return files("lowering.codegen").joinpath("device", name).read_text("utf-8")


def test_all_files_are_in_a_unit_that_uses_all():
    folder = files("lowering.codegen").joinpath("device")
    assert {*PARTS} == {each.name for each in folder.iterdir() if each.name.endswith(".cuh")}
    assert all(text(name) in preamble(EVERYTHING) for name in PARTS)


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_file_is_left_out_unless_it_is_used(name):
    assert text(name) not in preamble("float x = tg_add(1.0f, 2.0f);")
    for mark in PARTS[name]:
        assert text(name) in preamble(f"  {mark} x;")


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_file_compiles_without_those_that_are_not_used_with_it(name):
    for mark in PARTS[name]:
        assert cubin(preamble(mark) + 'extern "C" __global__ void k() {}', "sm_90").code


def test_marks_are_names_of_their_files():
    for name in OPTIONAL:
        for mark in PARTS[name]:
            assert mark in text(name)


def test_what_code_generation_writes_is_a_mark():
    """Files of types are used by the types, and may be used by other names only beside them."""
    by_type = {"half.cuh", "complex.cuh"}
    sources = Path(lowering.__file__).parent.rglob("*.py")
    written = {name for path in sources for name in NAME.findall(path.read_text("utf-8"))}
    for name in set(OPTIONAL) - by_type:
        elsewhere = "".join(text(other) for other in PARTS if other != name)
        own = {found for found in NAME.findall(text(name)) if found not in elsewhere}
        for used in written & own:
            assert any(mark in used for mark in PARTS[name]), f"{used} of {name} is written"
