"""Functions as files: what is loaded gives the bits of the function, and is called as it is."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import re
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.corpus import CASES
from tests.programs import exported
from tests.unit.saving.mutations import repacked
from tracegraph import errors
from tracegraph.__main__ import main
from tracegraph.ir.stored.reading import program_from_json
from tracegraph.ir.stored.writing import program_key, program_to_json, text_of
from tracegraph.saving.container import MANIFEST, SavedContainer

F64 = tracegraph.ArrayType("float64", (3,))


def again(function: Any, *args: Any, **options: Any) -> tracegraph.Exported:
    return tracegraph.load(bytes(tracegraph.export(function, *args, **options)))


@pytest.mark.parametrize("name", exported.CASES)
def test_loaded_functions_give_the_bits_of_the_jitted_one(name: str, capsys: Any) -> None:
    function, arguments = exported.CASES[name]
    loaded = tracegraph.load(bytes(exported.exported(name)))
    found, expected = loaded(*arguments), tracegraph.jit(function)(*arguments)
    assert tracegraph.tree.structure(found) == tracegraph.tree.structure(expected)
    for a, b in zip(exported.leaves(found), exported.leaves(expected), strict=True):
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    printed = capsys.readouterr()
    assert printed.out[: len(printed.out) // 2] == printed.out[len(printed.out) // 2 :]


@pytest.mark.parametrize("folder", sorted(exported.FOLDER.iterdir()), ids=lambda f: f.name)
def test_files_of_every_release_load(folder: Path) -> None:
    expected, files = np.load(folder / "results.npz"), sorted(folder.glob("*.tg"))
    assert {key.partition(".")[0] for key in expected} == {file.stem for file in files}
    assert sum(file.stat().st_size for file in files) < 100_000
    for file in files:
        name, arguments = file.stem, exported.CASES[file.stem][1]
        found = exported.leaves(tracegraph.load(file)(*arguments))
        assert len(found) == sum(key.startswith(f"{name}.") for key in expected)
        for number, leaf in enumerate(found):
            np.testing.assert_allclose(leaf, expected[f"{name}.{number}"], rtol=1e-6, atol=1e-12)


def test_the_programs_of_the_corpus_pass_through_files() -> None:
    for case in CASES.values():
        program = tracegraph.jit(case.function).trace(*case.arguments).optimized
        text = text_of(program_to_json(program))
        loaded = program_from_json(json.loads(text), program.constants)
        assert str(loaded) == str(program)
        assert program_key(loaded)[0] == program_key(program)[0]


def test_the_key_knows_constants_and_attributes_but_no_names() -> None:
    def key(function: Any, name: str = "f") -> bytes:
        function.__name__ = name
        return program_key(tracegraph.jit(function).trace(F64).optimized)[0]

    one, other = np.array([1.0, 2, 3]), np.array([1.0, 2, 4])
    found = key(lambda x: np.sum(x * one))
    assert key(lambda x: np.sum(x * one), "another name") == found
    assert key(lambda x: np.sum(x * other)) != found
    assert key(lambda x: np.max(x * one)) != found


def test_it_is_called_inside_of_other_functions_and_transforms() -> None:
    def line(x: Any, w: Any) -> Any:
        return np.sum(np.sin(x) * w)

    f, x = again(line, F64, 1.0), np.array([0.1, 0.2, 0.3])
    np.testing.assert_array_equal(tracegraph.grad(f)(x, 2.0), tracegraph.grad(line)(x, 2.0))
    rows = tracegraph.vmap(lambda y: f(y, 2.0))(np.stack([x, 2 * x]))
    np.testing.assert_allclose(rows, [line(x, 2), line(2 * x, 2)])
    assert tracegraph.jit(lambda y: f(y, 2.0) + 1)(x) == line(x, 2) + 1


def test_effects_keep_their_order_where_it_is_part_of_another(capsys: Any) -> None:
    def says(x: Any) -> Any:
        tracegraph.debug.print("inner {}", x)
        return x

    f = again(says, 1.0)

    @tracegraph.jit
    def around(x: Any) -> Any:
        tracegraph.debug.print("before {}", x)
        y = f(x)
        tracegraph.debug.print("after {}", y)
        return y

    around(2.0)
    assert capsys.readouterr().out == "before 2.0\ninner 2.0\nafter 2.0\n"


@pytest.mark.parametrize("order", [0, 1])
def test_rules_are_kept_to_the_order_that_was_asked_for(order: int) -> None:
    f = again(exported.rules, 1.0, order=order)
    if order:
        assert tracegraph.grad(f)(-2.0) == -2
    else:
        with pytest.raises(errors.CustomRuleError, match="order="):
            tracegraph.grad(f)(-2.0)


def test_it_has_a_program_for_each_listed_signature() -> None:
    f = again(lambda x, k: x * k, signatures=[(F64, 1.0), (1.0, F64), (np.int32(1), 2)])
    assert f(np.ones(3), 2.0).shape == f(2.0, np.ones(3)).shape == (3,)
    assert f(np.int32(3), 4) == 12
    with pytest.raises(errors.ExportedTypesError, match=r"(?s)f32\[3\].*f64\[3\], ~f64\[\]\n"):
        f(np.ones(3, "f4"), 2.0)
    assert len(f.programs) == 3
    assert "multiply" in f.requires


def test_static_and_donated_arguments_are_kept() -> None:
    @tracegraph.jit(static_argnums=1, donate_argnums=0)
    def power(x: Any, n: int) -> Any:
        return x**n

    f, x = again(power, F64, 3), tracegraph.asarray(np.full(3, 2.0))
    assert f(x, 3).tolist() == [8, 8, 8]
    with pytest.raises(errors.DonatedArrayError):
        f(x, 3)
    with pytest.raises(errors.ExportedTypesError):
        f(np.ones(3), 2)


def test_classes_are_found_by_name() -> None:
    Pair = namedtuple("Pair", "a b")
    Other = namedtuple("Pair", "a b")
    f = again(lambda p: Pair(p.b, p.a), Pair(1.0, 2.0))
    assert type(f(Pair(1.0, 2.0))) is Pair
    assert type(f(Other(1.0, 2.0))) is Other
    made = again(lambda x: Pair(x, x), 1.0)(1.0)
    assert (type(made).__name__, made._fields) == ("Pair", ("a", "b"))

    @tracegraph.register_dataclass(name="tests.Gone")
    @dataclasses.dataclass
    class Gone:
        x: Any

    data = bytes(tracegraph.export(lambda x: Gone(x), 1.0))
    manifest = SavedContainer(data).manifest
    text = json.dumps(manifest).replace("tests.Gone", "tests.Lost")
    data = repacked(data, {MANIFEST: json.loads(text)})
    with pytest.warns(errors.UnknownTreeWarning, match=r"tests\.Lost"):
        assert tracegraph.load(data)(1.0) == (1.0,)


def test_what_no_file_can_hold_is_refused_with_its_line() -> None:
    cases = [
        lambda x: tracegraph.pure_callback(lambda y: y, F64, x),
        lambda x: tracegraph.fori_loop(0, 3, lambda i, y: y, x, progress=lambda step, total: None),
    ]
    for function in cases:
        with pytest.raises(errors.UnsavableError, match=r"test_export\.py:\d+"):
            tracegraph.export(function, F64)
    with pytest.raises(TypeError, match="save takes what"):
        tracegraph.save(lambda x: x, "never.tg")  # type: ignore[arg-type]


def test_files_are_the_same_each_time_and_are_pickled(tmp_path: Path) -> None:
    path = tmp_path / "model.tg"
    f = exported.exported("constants")
    f.save(path)
    assert (
        path.read_bytes() == bytes(exported.exported("constants")) == bytes(tracegraph.load(path))
    )
    assert len(pickle.loads(pickle.dumps(f)).programs) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["model.tg"]


def test_the_command_prints_what_a_file_holds(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "model.tg"
    exported.exported("loops").save(path)
    assert main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "while_loop" in shown
    assert "# exported.py:" in shown
    assert main(["inspect", str(path), "--brief"]) == 0
    assert "program loops(" not in capsys.readouterr().out
    path.write_bytes(b"no zip")
    assert main(["inspect", str(path)]) == 1
    assert "no file that tracegraph.save has written" in capsys.readouterr().err


def test_another_process_gives_the_same_bits(tmp_path: Path) -> None:
    path = tmp_path / "model.tg"
    f = exported.exported("selections")
    f.save(path)
    script = (
        "import sys, numpy as np, tracegraph\n"
        "f = tracegraph.load(sys.argv[1])\n"
        "found = tracegraph.tree.leaves(f(np.linspace(-1, 2, 8)))\n"
        "print(*[np.asarray(leaf).tobytes().hex() for leaf in found])"
    )
    command = [sys.executable, "-c", script, str(path)]
    found = subprocess.run(command, env=os.environ, capture_output=True, check=True, text=True)
    expected = [leaf.tobytes().hex() for leaf in exported.leaves(f(exported.X))]
    assert found.stdout.split() == expected


def test_mistakes_of_exports_are_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"such as \('sm_90',\), not 'sm_90'"):
        tracegraph.export(np.sin, F64, targets="sm_90")
    with pytest.raises(TypeError, match=r"a tuple of arguments for each: \[\(x,\)"):
        tracegraph.export(np.sin, signatures=[F64])  # type: ignore[list-item]
    for dtype, shape in (((3,), "float32"), ("float32", 3), ("float32", (None,))):
        with pytest.raises(TypeError, match=r"a dtype and a shape of numbers, .*; got"):
            tracegraph.ArrayType(dtype, shape)
    with pytest.raises(ValueError, match="0 or more, not -1"):
        tracegraph.export(np.sin, F64, order=-1)
    f = tracegraph.export(np.sin, F64)
    with pytest.raises(FileNotFoundError, match=r"none/model\.tg'$"):
        f.save(tmp_path / "none" / "model.tg")
    with pytest.raises(IsADirectoryError, match=re.escape(repr(str(tmp_path)))):
        f.save(tmp_path)
    with pytest.raises(errors.DamagedFileError, match=r"Exported\.save_flat"):
        tracegraph.load(b"TGRAPH\0\1 and so on")
