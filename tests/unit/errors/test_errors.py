"""`tracegraph.errors` has every error class, wherever in the package it is written."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import traceback

import pytest

from tracegraph import errors

PARTS = [
    importlib.import_module(f"{errors.__name__}.{found.name}")
    for found in pkgutil.iter_modules(errors.__path__)
]
CLASSES = {
    value
    for part in PARTS
    for value in vars(part).values()
    if isinstance(value, type) and issubclass(value, BaseException)
}


def test_all_are_exported_under_one_module() -> None:
    assert len(CLASSES) > 40
    for class_ in CLASSES:
        assert getattr(errors, class_.__name__) is class_
        assert class_.__name__ in errors.__all__
        assert class_.__module__ == "tracegraph.errors"


def test_a_traceback_names_the_public_module() -> None:
    with pytest.raises(errors.ClosedError) as caught:
        raise errors.ClosedError("solve")
    (line,) = traceback.format_exception_only(caught.value)
    assert line.startswith("tracegraph.errors.ClosedError: the executable of 'solve'")


def test_errors_are_pickled_by_their_public_name() -> None:
    pickled = pickle.dumps(errors.ClosedError("solve"))
    assert b"tracegraph.errors.running" not in pickled


@pytest.mark.parametrize(
    "error",
    [
        errors.OutOfMemoryError("cuda:0", 3, 1, 2, {"arrays": 1}, [("solve", 1)]),
        errors.DeviceLostError("CUDA_ERROR_LAUNCH_FAILED"),
        errors.TimeLimitError(3.0),
        errors.ArgumentTypesError("solve", "x: f32[3], now f64[3]"),
        errors.ImmutableArrayError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_out_of_other_processes_as_they_were(error: Exception) -> None:
    error.add_note("seen in a worker")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)
