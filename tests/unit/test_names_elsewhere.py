"""Names and keywords of other libraries: the error says what they are here, and that works."""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.cases.names_of_jax import HERE, NAMES_OF_JAX
from tests.helpers.processes import end_of
from tracegraph.errors import KeywordError, names_elsewhere
from tracegraph.errors.names_elsewhere import OF_ARRAYS, OF_STAGES, OTHERS
from tracegraph.errors.names_of_jax import NAMES

MODULES = {name: import_module(name) for name in NAMES}


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in NAMES.items() for n in names])
def test_a_name_elsewhere_is_none_here_and_says_ours(module: str, name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(MODULES[module], name)
    assert str(caught.value) == (
        f"module {module!r} has no attribute {name!r}; {NAMES[module][name]}"
    )
    assert not hasattr(MODULES[module], name)


def test_every_name_of_ours_that_is_said_exists() -> None:
    texts = [text for table in (NAMES, OTHERS) for of in table.values() for text in of.values()]
    texts += OF_ARRAYS.values()
    texts += [text for names in names_elsewhere._KEYWORDS.values() for text in names.values()]
    said = {
        word.strip(".,;:()'")
        for text in texts
        for word in text.replace("(", " ").replace(")", " ").split()
        if word.startswith(("tracegraph.", "numpy.", "functools."))
    }
    assert len(said) > 30
    roots = {"tracegraph": tracegraph, "numpy": np, "functools": functools}
    for path in said:
        root, *names = path.split(".")
        functools.reduce(getattr, names, roots[root])


@pytest.mark.parametrize("module_of_jax", NAMES_OF_JAX)
def test_every_name_of_jax_is_had_or_answered(module_of_jax: str) -> None:
    here = HERE[module_of_jax]
    for name in NAMES_OF_JAX[module_of_jax].split():
        try:
            getattr(MODULES[here], name)
        except AttributeError as error:
            said = str(error)
            assert said.startswith(f"module {here!r} has no attribute {name!r}; "), said


def test_numpys_names_are_said_to_be_numpys() -> None:
    with pytest.raises(AttributeError, match=r"'sin'; use NumPy's own, numpy\.sin$"):
        tracegraph.sin  # noqa: B018
    with pytest.raises(AttributeError, match=r"'hanning'; use NumPy's own, numpy\.hanning$"):
        tnp.hanning  # noqa: B018


def test_the_tables_are_read_when_a_name_is_missing() -> None:
    code = (
        "import sys, tracegraph\n"
        "table = 'tracegraph.errors.names_of_jax'\n"
        "print(table in sys.modules, hasattr(tracegraph, 'lax'), table in sys.modules)"
    )
    assert end_of(code) == (0, "False False True\n", "")


@pytest.mark.parametrize("module", MODULES)
def test_other_names_get_pythons_error(module: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'nonsense'$"):
        MODULES[module].nonsense  # noqa: B018


def test_what_a_stage_has_is_said_of_a_jitted_function() -> None:
    def f(x: Any) -> Any:
        return x

    jitted: Any = tracegraph.jit(f, device="host")
    for name, path in OF_STAGES.items():
        with pytest.raises(AttributeError, match="it depends on types") as caught:
            getattr(jitted, name)
        assert str(caught.value).endswith(path if "tracegraph" in path else f"f.{path}")
        names = {"f": jitted, "args": (1.0,), "tracegraph": tracegraph}
        if name not in {"graph", "export_graph"}:  # of the host there are none
            assert eval(path if "tracegraph" in path else f"f.{path}", names) is not None
    assert not set(OF_STAGES) & set(dir(jitted))


@pytest.mark.parametrize("module", OTHERS)
def test_names_of_pytorch_cupy_and_numba_are_answered(module: str) -> None:
    here = import_module(module)
    for name, said in OTHERS[module].items():
        assert name not in NAMES[module]
        with pytest.raises(AttributeError) as caught:
            getattr(here, name)
        assert str(caught.value) == f"module {module!r} has no attribute {name!r}; {said}"


def test_attributes_of_other_arrays_are_answered() -> None:
    def traced(x: Any) -> Any:
        for name, said in OF_ARRAYS.items():
            with pytest.raises(AttributeError) as caught:
                getattr(x, name)
            assert str(caught.value).endswith(f"has no attribute {name!r}; {said}")
        return x

    x = tracegraph.jit(traced, device="host")(np.ones(3))
    traced(x)
    assert not set(OF_ARRAYS) & set(dir(x))
    assert not any(hasattr(x, name) or hasattr(tracegraph.Array, name) for name in OF_ARRAYS)
    with pytest.raises(AttributeError, match="'Array' object has no attribute 'nonsense'"):
        x.nonsense  # noqa: B018


KEYWORDS: dict[str, tuple[Any, str]] = {
    "while_loop init_val": (
        lambda: tracegraph.while_loop(
            cond_fun=lambda c: c < 3,
            body_fun=lambda c: c + 1,
            init_val=0,  # type: ignore[call-arg]
        ),
        "pass init=",
    ),
    "fori_loop init_val": (
        lambda: tracegraph.fori_loop(0, 3, lambda i, c: c, init_val=0),  # type: ignore[call-arg]
        "pass init=",
    ),
    "cond operand": (
        lambda: tracegraph.cond(True, np.sin, np.cos, operand=1.0),  # type: ignore[call-arg]
        "pass the operands, one after another",
    ),
    "map batch_size": (
        lambda: tracegraph.map(np.sin, np.ones(4), batch_size=2),  # type: ignore[call-arg]
        "tracegraph.vmap",
    ),
    "jit keep_unused": (
        lambda: tracegraph.jit(np.sin, keep_unused=True),  # type: ignore[call-overload]
        "arguments that are not used are never read",
    ),
    "scan _split_transpose": (
        lambda: tracegraph.scan(np.add, 0, np.ones(3), _split_transpose=True),  # type: ignore[call-arg]
        "pass nothing: it is not needed",
    ),
    "cond linear": (
        lambda: tracegraph.cond(True, np.sin, np.cos, 1.0, linear=(False,)),  # type: ignore[call-arg]
        "pass nothing: what is linear is found out",
    ),
    "jit compiler_options": (
        lambda: tracegraph.jit(np.sin, compiler_options={}),  # type: ignore[call-overload]
        "device=, scratch= and max_builds= are the options",
    ),
    "jit backend": (
        lambda: tracegraph.jit(np.sin, backend="cpu"),  # type: ignore[call-overload]
        "pass device=",
    ),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_keyword_elsewhere_says_ours(name: str) -> None:
    call, advice = KEYWORDS[name]
    function, keyword = name.split()
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(
        f"{function}() got an unexpected keyword argument '{keyword}'; "
    )
    assert advice in str(caught.value)


@pytest.mark.parametrize("method", ["set", "add", "multiply", "min", "max", "get"])
def test_modes_of_indexed_updates_say_what_happens_out_of_range(method: str) -> None:
    at = tracegraph.asarray([1.0, 2.0]).at[0]
    value = () if method == "get" else (3.0,)
    happens = "reads the nearest element" if method == "get" else "changes nothing"
    with pytest.raises(KeywordError, match=f"{method} has no parameter mode: .* {happens}"):
        getattr(at, method)(*value, mode="drop")
    with pytest.raises(KeywordError, match="unique_indices: it is called unique"):
        getattr(at, method)(*value, unique_indices=True)
    getattr(at, method)(*value, unique=True)


def test_errors_of_the_users_functions_are_left_alone() -> None:
    def body(c: Any) -> Any:
        raise TypeError("while_loop() got an unexpected keyword argument 'inits'")

    with pytest.raises(TypeError, match=r"'inits'$"):
        tracegraph.while_loop(lambda c: c < 3, body, 0)


def test_bfloat16_is_a_dtype_of_the_namespace() -> None:
    assert np.dtype(tnp.bfloat16).name == "bfloat16"
    assert tracegraph.asarray([1.0], tnp.bfloat16).dtype == np.dtype("bfloat16")
