"""Builds the wheel, installs it into a fresh environment, and uses it from an empty directory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import sys
import numpy as np
import tracegraph, lowering
assert "site-packages" in tracegraph.__file__, tracegraph.__file__

@tracegraph.jit
def collatz(n):
    def step(state):
        n, k = state
        return np.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1
    return tracegraph.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]

assert int(collatz(27)) == 111
lowered = collatz.lower(27)
assert "native code" in lowered.explain() and "define i32 @run" in lowered.source
assert "__global__" in tracegraph.jit(collatz, device="cuda").lower(27).source
print("collatz(27) takes", int(collatz(27)), "steps; tracegraph", tracegraph.__version__)
"""


def main() -> None:
    """Raise if the wheel is not what a user needs."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(directory / "dist")]
        subprocess.run([*build, str(ROOT)], check=True, stdout=subprocess.DEVNULL)
        (wheel,) = (directory / "dist").glob("*.whl")
        contents = zipfile.ZipFile(wheel)
        names = contents.namelist()
        top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
        if top != {"tracegraph", "lowering"}:
            raise SystemExit(f"the wheel's top level is {sorted(top)}")
        for name in names:
            if name.startswith("lowering/testing/") or b"lowering.testing" in contents.read(name):
                raise SystemExit(f"the recording driver is for tests: {name} is it, or uses it")
        if "lowering/native/library/functions.ll" not in names:
            raise SystemExit("the wheel lacks the library of native code")
        environment = directory / "env"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True)
        empty = directory / "empty"
        empty.mkdir()
        subprocess.run([python, "-W", "error", "-c", PROGRAM], check=True, cwd=empty)
    print(f"{wheel.name}: {len(names)} files, top level {sorted(top)}")


if __name__ == "__main__":
    main()
