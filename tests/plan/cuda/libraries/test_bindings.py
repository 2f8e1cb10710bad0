"""Bindings of libraries, imported without the packages around them."""

from __future__ import annotations

import pytest

from tests.helpers.processes import end_of

pytest.importorskip("nvmath")

SCRIPT = """
import sys
from threading import Thread
from lowering.cuda.libraries import bindings

found = []
real = bindings.import_module

def slow(name):
    if name == "nvmath.bindings.cublas":  # a thread imports the package meanwhile
        import nvmath
        assert not hasattr(nvmath, "linalg")
        thread = Thread(target=lambda: found.append(nvmath.linalg))
        thread.start()
        threads.append(thread)
    return real(name)

threads = []
bindings.import_module = slow
cublas = bindings.binding("cublas")
threads[0].join()
import nvmath
assert found == [nvmath.linalg] and sys.modules["nvmath"] is nvmath
assert nvmath.bindings.cublas is cublas is bindings.binding("cublas")
assert nvmath.bindings.cusolverDn is bindings.binding("cusolverDn")
try:
    bindings.binding("circles")
except ImportError as error:
    print(error)
"""

LIGHT = """
import sys
from lowering.cuda.libraries.bindings import binding
for name in ("cublas", "cusolverDn", "cufft"):
    assert binding(name).create is binding(name).create
print([name for name in sys.modules if name in ("nvmath", "nvmath.bindings", "nvmath.linalg")])
import nvmath
print(nvmath.linalg.__name__, nvmath.bindings.cublas is binding("cublas"))
"""


def test_a_binding_is_that_of_the_package_which_others_import_meanwhile() -> None:
    assert end_of(SCRIPT) == (0, "No module named 'nvmath.bindings.circles'\n", "")


def test_the_packages_around_bindings_are_not_run() -> None:
    assert end_of(LIGHT) == (0, "[]\nnvmath.linalg True\n", "")
