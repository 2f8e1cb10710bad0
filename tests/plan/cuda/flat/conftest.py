"""C programs that run flat files on a fake driver, compiled once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lowering.cuda.recipe.flat.flat_file import c_loader

SOURCES = Path(__file__).parents[3] / "fakes" / "c"


@dataclass(frozen=True)
class CProgram:
    """A program of C that was linked with the loader, which takes the fake driver for libcuda."""

    path: Path

    def __call__(self, *arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
        """What it prints, with settings of the fake driver."""
        environment = {f"FAKE_CUDA_{name.upper()}": str(each) for name, each in settings.items()}
        found = subprocess.run(
            [self.path, *map(str, arguments)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
        assert not found.stderr, found.stderr  # of the sanitizers
        return found


@pytest.fixture(scope="session")
def c_compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("there is no compiler of C")
    return found


@pytest.fixture(scope="session")
def c_program(c_compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., CProgram]:
    """Compiles a source of C, with sanitizers, and links it with the fake driver."""
    folder = tmp_path_factory.mktemp("c")
    warned = ["-Wall", "-Wextra", "-Werror", "-g"]
    checked = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    if subprocess.run([c_compiler, *checked, probe, "-o", folder / "probe"]).returncode:
        pytest.skip("the compiler of C has no sanitizers")

    def compiled(source: Path, target: str, *options: str) -> Path:
        found = subprocess.run(
            [c_compiler, *warned, *checked, *options, source, "-o", folder / target, "-ldl"],
            capture_output=True,
            text=True,
        )
        assert not found.returncode, found.stderr
        return folder / target

    fake = compiled(SOURCES / "fake_cuda.c", "fake_cuda.so", "-shared", "-fPIC")

    def program(source: Path, *more: str) -> CProgram:
        options = [f"-I{c_loader().parent}", f'-DTG_LIBCUDA="{fake}"', *more]
        return CProgram(compiled(source, source.stem, *options))

    return program


@pytest.fixture(scope="session")
def run_flat(c_program: Callable[..., CProgram]) -> CProgram:
    return c_program(SOURCES / "run_flat.c")
