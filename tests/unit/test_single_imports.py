"""Modules that are imported without running the packages around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.processes import end_of

MEANWHILE = """
import sys
from threading import Thread
from tracegraph import single_imports

found, threads, real = [], [], single_imports.import_module

def slow(name):
    if name == "scipy.linalg._flapack":  # a thread imports the package meanwhile
        import scipy.linalg
        assert not hasattr(scipy.linalg, "solve")
        threads.append(Thread(target=lambda: found.append(scipy.linalg.solve)))
        threads[0].start()
    return real(name)

single_imports.import_module = slow
lapack = single_imports.imported_alone("scipy.linalg._flapack", ("scipy.linalg",))
threads[0].join()
import scipy.linalg
assert found == [scipy.linalg.solve] and sys.modules["scipy.linalg"] is scipy.linalg
assert scipy.linalg.get_lapack_funcs("getrf", dtype="f8") is lapack.dgetrf
try:
    single_imports.imported_alone("scipy.linalg.circles", ("scipy.linalg",))
except ImportError as error:
    print(error)
"""

EACH_OTHER = """
import sys
from pathlib import Path
from threading import Event, Thread
from tracegraph import single_imports

package = Path(sys.argv[1], "package_of_two")
package.mkdir()
(package / "__init__.py").write_text("name = 5")
(package / "inner.py").write_text(
    "import sys; sys.entered.set(); from package_of_two import name; found = name"
)
sys.path.insert(0, sys.argv[1])
sys.entered, real, single_imports.MOST_SECONDS = Event(), single_imports.import_module, 0.05
other = Thread(target=real, args=("package_of_two.inner",))

def behind(module):
    if module == "package_of_two.inner":
        other.start()
        sys.entered.wait()  # the other thread is importing it
    return real(module)

single_imports.import_module = behind
inner = single_imports.imported_alone("package_of_two.inner", ("package_of_two",))
other.join()
import package_of_two
assert inner is package_of_two.inner and sys.modules["package_of_two"] is package_of_two
print(inner.found, package_of_two.name)
"""

LIBRARIES = """
import sys
from lowering.cuda.libraries.bindings import binding
for name in ("cublas", "cusolverDn", "cufft"):
    assert binding(name).create is binding(name).create
print([name for name in sys.modules if name in ("nvmath", "nvmath.bindings", "nvmath.linalg")])
import nvmath
print(nvmath.linalg.__name__, nvmath.bindings.cublas is binding("cublas"))
"""

SOLVED = """
import sys
import numpy as np
import tracegraph
x = tracegraph.jit(np.linalg.solve, device="host")(np.eye(40) * 2, np.ones(40))
print(float(x[0]), "scipy.linalg" in sys.modules)
import scipy.linalg
print(scipy.linalg.inv(np.eye(1)))
"""


def test_the_package_can_be_imported_meanwhile_and_later() -> None:
    assert end_of(MEANWHILE) == (0, "No module named 'scipy.linalg.circles'\n", "")


def test_threads_that_wait_for_each_other_go_on(tmp_path: Path) -> None:
    assert end_of(EACH_OTHER, str(tmp_path)) == (0, "5 5\n", "")


def test_bindings_of_libraries_come_without_the_others() -> None:
    pytest.importorskip("nvmath")
    assert end_of(LIBRARIES) == (0, "[]\nnvmath.linalg True\n", "")


def test_a_system_is_solved_without_importing_linear_algebra_of_scipy() -> None:
    assert end_of(SOLVED) == (0, "0.5 False\n[[1.]]\n", "")
