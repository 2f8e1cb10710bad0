"""Code and its constants lie together, wherever the process has room."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes
from lowering.native.compilation import compiler

PAGE, SIZE, NOTHING, PRIVATE = 4096, 3 << 30, 0, 0x4022  # without access, and without memory
text = '''
@table = private constant [64 x double] [%s]
define double @entry(i64 %%i) {
  %%place = getelementptr [64 x double], ptr @table, i64 0, i64 %%i
  %%value = load double, ptr %%place
  ret double %%value
}''' % ", ".join(f"double {i}.0" for i in range(64))
code = compiler.compile(text)
compiler.load([code], "entry")  # what LLVM needs itself is there from now on
system = ctypes.CDLL(None)
system.mmap.restype = ctypes.c_void_p
system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
base = system.mmap(None, SIZE, NOTHING, PRIVATE, -1, 0)
for _ in range(2000):  # no other hole is left above
    system.mmap(None, PAGE, NOTHING, PRIVATE, -1, 0)
system.munmap(base + SIZE - 50 * PAGE, PAGE)
loaded = compiler.load([code], "entry")
print(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(loaded.addresses["entry"])(5))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="by Linux's mmap, on x86-64"
)
def test_code_is_loaded_where_only_a_page_is_free_nearby() -> None:
    """As beside CUDA, which reserves address space. LLVM ended the process."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "5.0\n"), done.stderr
