"""Code of whole programs on disk: a second process writes no kernels, and loads no compiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.processes import environment
from tracegraph.cache.settings import DIRECTORY_VARIABLE, PROGRAMS_VARIABLE

pytest.importorskip("cuda.bindings.nvrtc")

SCRIPT = """
import json, sys
import numpy as np
import tracegraph
from lowering import codegen
from lowering.cuda.compilation import compile as compiling
from lowering.cuda.open_devices import OpenDevice
from lowering.testing.recording_backend import RecordingBackend, RecordingDevice

class Device(RecordingDevice):
    # compiles and keeps as a GPU does; what is loaded is a word, as there is no GPU
    program_store, kept, note = OpenDevice.program_store, OpenDevice.kept, OpenDevice.note
    def compile(self, source):
        return compiling.cubin(source, "sm_90")
    def compile_all(self, sources):  # not in threads: they would import the compiler at once
        return list(map(self.compile, sources))
    def code_bytes(self, code):
        return len(code.code)

written = []
unit_source = codegen.unit_source
codegen.unit_source = lambda plan: written.append(plan) or unit_source(plan)
backend = RecordingBackend()
backend.device = backend._opened = Device(backend.device.driver)
backend.device.compilers = int(sys.argv[1])
load = backend.device.driver.load
backend.device.driver.load = lambda code: load(str(len(code.code)))

def {name}(x):
    y = np.sort(np.sin(x)) + x.sum()
    return tracegraph.while_loop(lambda y: y[0] < 3, lambda y: y * 2 + 1, y), x.cumsum()

plan = tracegraph.jit({name}, device="cuda").lower(np.ones(1000)).plan
backend.compile(plan)
graph = max(backend.device.driver.graphs, key=lambda graph: len(graph.nodes))
compiler = "libnvrtc" in open("/proc/self/maps").read() if sys.platform == "linux" else None
stats = tracegraph.cache.stats()
print(json.dumps([len(written), compiler, [node.name for node in graph.nodes], stats["entries"]]))
"""


def run(folder: Path, name: str, compilers: int, programs: int) -> list[Any]:
    command = [sys.executable, "-c", SCRIPT.replace("{name}", name), str(compilers)]
    variables = {DIRECTORY_VARIABLE: str(folder), PROGRAMS_VARIABLE: str(programs)}
    done = subprocess.run(command, env=environment(**variables), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_second_process_writes_and_compiles_nothing(tmp_path: Path) -> None:
    first = run(tmp_path, "function", 2, 1)
    assert first[:2] == [1, True if sys.platform == "linux" else None]
    renamed = run(tmp_path, "renamed", 16, 1)
    assert renamed[:2] == [0, False if sys.platform == "linux" else None]
    assert renamed[2:] == first[2:]


def test_kernels_depend_on_no_name_and_no_number_of_processors(tmp_path: Path) -> None:
    first = run(tmp_path, "function", 1, 0)
    renamed = run(tmp_path, "renamed", 16, 0)
    assert renamed[0] == 1
    assert renamed[1] in (False, None)
    assert renamed[2:] == first[2:]
