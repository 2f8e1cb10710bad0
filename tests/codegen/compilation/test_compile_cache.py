"""Compiling needs no GPU; the disk cache never returns what was not compiled from the source."""

import os
import subprocess
import sys

import numpy as np
import pytest

from lowering.codegen.preamble import preamble
from lowering.cuda.compilation import compile as compiling
from lowering.cuda.graph.copies import COPY_SOURCE, PACK_AXES, PACK_SOURCE, pack_values
from lowering.cuda.graph.small_inputs import load_source, value_slots
from lowering.cuda.interface import ForeignArray
from lowering.cuda.libraries.pointer_arrays import arrays_source
from lowering.disk_cache import private_folder
from lowering.disk_cache.location import CACHE_VARIABLE, cache_directory
from lowering.plan.launch_graph import MOST_ARRAYS, fitting
from lowering.plan.nests.buffer import Buffer
from tests.helpers.processes import end_of
from tracegraph.ir.types import ArrayType

nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = 'extern "C" __global__ void fill(float* x) {{ x[threadIdx.x] = {}f; }}'


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


def entries(directory):
    return [path for path in (directory / "entries").rglob("*") if path.is_file()]


def forbid_compiling(monkeypatch):
    class Forbidden:
        def __init__(self, *arguments, **options):
            raise AssertionError("compiled again")

    monkeypatch.setattr("cuda.core.Program", Forbidden)


def test_a_cubin_is_made_once(directory, monkeypatch):
    first = compiling.cubin(SOURCE.format("1.0"), "sm_90")
    assert bytes(first.code).startswith(b"\x7fELF")
    assert len(entries(directory)) == 1
    forbid_compiling(monkeypatch)
    again = compiling.cubin(SOURCE.format("1.0"), "sm_90")
    assert bytes(again.code) == bytes(first.code)


def test_source_and_architecture_are_part_of_the_key(directory):
    codes = [
        bytes(compiling.cubin(SOURCE.format(value), arch).code)
        for value, arch in [("1.0", "sm_90"), ("2.0", "sm_90"), ("1.0", "sm_80")]
    ]
    assert len(set(codes)) == 3
    assert len(entries(directory)) == 3


def test_the_compiler_is_part_of_the_key(directory, monkeypatch):
    compiling.cubin(SOURCE.format("5.0"), "sm_90")
    monkeypatch.setattr(compiling, "compiler_identity", lambda: ("another",))
    compiling.cubin(SOURCE.format("5.0"), "sm_90")
    assert len(entries(directory)) == 2


PROCESS = """
import sys
from lowering.cuda.compilation.compile import cubin
sys.stdin.readline()
print(bytes(cubin({source!r}, "sm_90").code).hex())
loaded = open("/proc/self/maps").read() if sys.platform == "linux" else ""
print("libnvrtc" in loaded)
"""


def start_process(source):
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS.format(source=source)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )


def test_a_second_process_does_not_load_the_compiler(directory):
    source = SOURCE.format("6.0")
    first = start_process(source).communicate("go\n")[0].split()
    second = start_process(source).communicate("go\n")[0].split()
    assert first[0] == second[0]
    assert second[1] == "False"
    assert first[1] == str(sys.platform == "linux")


def test_processes_that_compile_the_same_source_at_once_agree(directory):
    source = SOURCE.format("7.0")
    processes = [start_process(source) for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    codes = {process.communicate()[0].split()[0] for process in processes}
    assert len(codes) == 1
    (entry,) = entries(directory)
    assert entry.read_bytes()[32:].hex() in codes
    left = [path for path in (directory / "tmp").rglob("*") if path.is_file()]
    assert not left


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_entry_is_rebuilt(directory, damage):
    good = bytes(compiling.cubin(SOURCE.format("3.0"), "sm_90").code)
    (entry,) = entries(directory)
    stored = entry.read_bytes()
    middle = len(stored) // 2
    flipped = stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]
    entry.write_bytes({"cut": stored[:middle], "flip": flipped, "empty": b""}[damage])
    assert bytes(compiling.cubin(SOURCE.format("3.0"), "sm_90").code) == good
    assert entry.read_bytes() == stored


def test_a_directory_that_cannot_be_made_only_warns(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file" / "below"))
    with pytest.warns(UserWarning, match=CACHE_VARIABLE):
        assert compiling.cubin(SOURCE.format("4.0"), "sm_90").code


def others_write(folder):
    folder.chmod(0o777)


def a_group_writes(folder):
    folder.chmod(0o770)
    os.chown(folder, -1, 12345)


def another_user_owns(folder):
    os.chown(folder, 12345, -1)


def others_write_to_its_entries(folder):
    (folder / "entries").mkdir()
    (folder / "entries").chmod(0o777)


def others_replace_it(folder):
    folder.parent.chmod(0o777)


def another_user_replaces_it(folder):
    os.chown(folder.parent, 12345, -1)


posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
as_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can give files to others"
)


@pytest.mark.parametrize(
    ("opened", "why"),
    [
        pytest.param(others_write, "all users may write to .*kernels .its mode", marks=posix),
        pytest.param(a_group_writes, "the group with gid 12345 may write", marks=as_root),
        pytest.param(another_user_owns, "kernels belongs to another user", marks=as_root),
        pytest.param(others_write_to_its_entries, "all users may write to .*entries", marks=posix),
        pytest.param(others_replace_it, "all users may write to .*mine", marks=posix),
        pytest.param(another_user_replaces_it, "mine belongs to another user", marks=as_root),
    ],
)
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, monkeypatch, opened, why):
    folder = tmp_path / "mine" / "kernels"
    folder.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    opened(folder)
    source = SOURCE.format("12.0")
    with pytest.warns(UserWarning, match=f"not kept: .*{why}.*{CACHE_VARIABLE}"):
        assert compiling.cubin(source, "sm_90").code
    assert not entries(folder)


@posix
def test_a_link_is_judged_by_where_it_leads(tmp_path, monkeypatch):
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "link"))
    with pytest.warns(UserWarning, match="all users may write to .*shared"):
        compiling.program_cache()


@posix
def test_a_folder_of_ones_own_in_one_with_the_sticky_bit_is_used(tmp_path, monkeypatch):
    (tmp_path / "everybody").mkdir()
    (tmp_path / "everybody").chmod(0o1777)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "everybody" / "kernels"))
    before = os.umask(0)
    try:
        assert compiling.program_cache() is not None
    finally:
        os.umask(before)
    assert (tmp_path / "everybody" / "kernels").stat().st_mode & 0o777 == 0o700


@posix
def test_the_private_group_of_a_user_may_write(tmp_path, monkeypatch):
    monkeypatch.setattr(private_folder, "_is_own_group", lambda gid: True)
    tmp_path.chmod(0o770)
    assert private_folder.make_private(tmp_path) == tmp_path.resolve()


def test_an_entry_that_cannot_be_read_is_compiled_again(directory, monkeypatch):
    """As those of another user: they are made for their owner alone."""
    good = bytes(compiling.cubin(SOURCE.format("8.0"), "sm_90").code)

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert bytes(compiling.cubin(SOURCE.format("8.0"), "sm_90").code) == good


def test_a_user_without_a_home_only_gets_a_warning(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", homeless)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.warns(UserWarning, match=CACHE_VARIABLE):
        assert compiling.cubin(SOURCE.format("9.0"), "sm_90").code


def test_the_compilers_log_is_in_the_error(directory):
    with pytest.raises(RuntimeError, match='identifier "missing" is undefined'):
        compiling.cubin('extern "C" __global__ void k(int* x) { *x = missing; }', "sm_90")
    assert not entries(directory)


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_directory() == tmp_path / "tracegraph" / "kernels"


def test_products_are_rounded_before_they_are_added(directory):
    source = 'extern "C" __global__ void k(double* x) { x[0] = x[1] * x[2] + x[3]; }'
    code = bytes(compiling.cubin(source, "sm_90").code)
    from cuda.core import Program, ProgramOptions

    contracted = Program(source, "c++", ProgramOptions(arch="sm_90", std="c++17")).compile("cubin")
    assert code != bytes(contracted.code)


def test_the_kernels_that_copy_and_load_compile(directory):
    inputs = [
        Buffer("input", i, ArrayType(dtype, shape))
        for i, (dtype, shape) in enumerate([("float32", ()), ("int8", (5,)), ("float64", (32,))])
    ]
    source = preamble(COPY_SOURCE) + COPY_SOURCE + load_source(list(value_slots(inputs).values()))
    source += arrays_source(MOST_ARRAYS)
    assert compiling.cubin(source, "sm_90").code
    assert compiling.cubin(PACK_SOURCE, "sm_90").code  # which belongs to no Plan


def test_small_inputs_have_aligned_slots_and_stop_at_the_limit():
    inputs = [Buffer("input", i, ArrayType("float64", (32,))) for i in range(20)]
    inputs.insert(0, Buffer("input", 20, ArrayType("int8", (3,))))
    inputs.append(Buffer("input", 21, ArrayType("float64", (33,))))
    inputs.append(Buffer("input", 22, ArrayType("float64", (0,))))
    slots = value_slots(fitting(inputs))
    assert list(slots) == inputs[:12]
    assert all(slot.offset % 16 == 0 for slot in slots.values())
    ends = [slot.word + slot.words for slot in slots.values()]
    starts = [slot.word for slot in slots.values()]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    parameters = [slot.parameter + i for slot in slots.values() for i in range(slot.words)]
    assert parameters == list(range(1, 1 + len(parameters)))
    assert 8 * (1 + len(parameters)) <= 4096


def test_pack_parameters_describe_the_strided_array():
    array = ForeignArray(4096, np.dtype("f4"), (2, 3), (-1, 4), 0, None)
    values = pack_values(512, array)
    assert values[:4] == [512, 4096, 6, 4]
    assert values[4:8] == [2, 2**64 - 1, 3, 4]
    assert (len(values), values[-1]) == (5 + 2 * PACK_AXES, 2)
    with pytest.raises(ValueError, match="axes"):
        pack_values(0, ForeignArray(0, np.dtype("f4"), (1,) * 17, (1,) * 17, 0, None))


def test_importing_tracegraph_loads_no_cuda():
    code = (
        "import sys, tracegraph\n"
        "loaded = [m for m in sys.modules if m.split('.')[0] in ('cuda', 'nvmath', 'lowering')]\n"
        "assert not loaded, loaded"
    )
    assert end_of(code) == (0, "", "")
