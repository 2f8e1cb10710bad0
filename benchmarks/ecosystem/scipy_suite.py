"""SciPy's own tests for arrays of any library, with Arrays: ``python -m … [modules] [-- pytest]``.

SciPy lists the libraries that it tests in its conftest.py. This command has it list
`tracegraph.array_api`, too, and runs the tests of that library alone, with `register_array_api`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

PLUGIN = "benchmarks.ecosystem.scipy_suite"

MODULES = (
    "scipy.differentiate.tests.test_differentiate",
    "scipy.special.tests.test_logsumexp",
    "scipy.spatial.transform.tests",
    "scipy.fft.tests",
    "scipy.cluster.tests",
    "scipy.constants.tests",
)
"""What is run by default: about two minutes."""

EDITS = {
    "xp_known_backends = {": "xp_known_backends = {'tracegraph.array_api', ",
    "    xp_available_backend_ids = {p.id": "    xp_available_backends.append(_tracegraph())\n"
    "    xp_available_backend_ids = {p.id",
}
"""Texts of SciPy's conftest.py, each of which it has once, and what stands there instead."""


def tracegraph_backend() -> Any:
    """The namespace of Arrays, as a parameter of SciPy's fixture `xp`."""
    import pytest

    from tracegraph import array_api

    return pytest.param(array_api, id=array_api.__name__, marks=pytest.mark.array_api_backends)


def load_conftest() -> None:
    """Import SciPy's conftest.py with one library more, before pytest does."""
    spec = find_spec("scipy.conftest")
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text("utf-8")
    for before, after in EDITS.items():
        if text.count(before) != 1:
            raise RuntimeError(f"{spec.origin} has {before!r} {text.count(before)} times, not once")
        text = text.replace(before, after)
    module = ModuleType("scipy.conftest")
    module.__file__, module.__spec__ = spec.origin, spec
    vars(module)["_tracegraph"] = tracegraph_backend
    sys.modules["scipy.conftest"] = module
    exec(compile(text, spec.origin, "exec"), vars(module))


def pytest_configure() -> None:
    """Called by pytest in the process of the tests, of which this file is a plugin."""
    from tracegraph.interop import register_array_api

    register_array_api()


def main(arguments: list[str]) -> int:
    """Run the tests of modules, by default of `MODULES`; pytest gets what follows ``--``."""
    modules, options = arguments, list[str]()
    if "--" in arguments:
        at = arguments.index("--")
        modules, options = arguments[:at], arguments[at + 1 :]
    command = [
        *(sys.executable, "-m", "pytest", "-p", PLUGIN, "--pyargs", *(modules or MODULES)),
        *("-m", "array_api_backends", "-q", "--tb=no", "-p", "no:cacheprovider"),
        *("-o", "addopts=", "-o", "filterwarnings=", "-c", os.devnull, *options),
    ]
    environment = {**os.environ, "SCIPY_ARRAY_API": '["tracegraph.array_api"]'}
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

if os.environ.get("SCIPY_ARRAY_API"):  # as a plugin of pytest
    load_conftest()
