"""Libraries that a Plan calls are loaded early, in threads."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
from lowering.backends.cuda_backend import called
from lowering.cuda.libraries import loading
from lowering.cuda.libraries.cublas import Cublas
from lowering.cuda.libraries.cufft import Cufft
from lowering.cuda.libraries.cusolver import Cusolver
from lowering.cuda.libraries.library_calls import CAPTURED
from lowering.plan.target.overrides import override

NAMES = {Cublas: "cublas", Cusolver: "cusolver", Cufft: "cufft"}


def test_calls_are_of_the_libraries_that_capture_them() -> None:
    own = {call: rule for call, rule in CAPTURED.items() if call.__module__.startswith("lowering.")}
    rules = {call.__name__: rule.library for call, rule in own.items()}
    wanted = {call: NAMES[library] for call, library in rules.items() if library in NAMES}
    assert wanted == loading.LIBRARIES


def test_each_library_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []

    def load(name: str) -> None:
        loaded.append((name, threading.current_thread() is threading.main_thread()))
        raise RuntimeError("the first call raises this")

    finder = SimpleNamespace(load_nvidia_dynamic_lib=load)
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", finder)  # type: ignore[arg-type]
    loading._begin.cache_clear()
    x = np.ones((900, 900), np.float32)
    for function in (lambda x: x + 1, lambda x: np.fft.fft(x @ x), lambda x: x @ x):
        with override(products="library"):
            plan = tracegraph.jit(function, device="cuda").lower(x).plan
        loading.load_early(called(plan))
        for thread in threading.enumerate():
            if thread.name.startswith("tracegraph loads"):
                thread.join()
    assert sorted(loaded) == [("cublas", False), ("cufft", False)]
    loading._begin.cache_clear()
