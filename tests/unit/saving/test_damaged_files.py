"""Damaged and made-up files are refused by errors of their own."""

from __future__ import annotations

import dataclasses
import json
import struct
import tracemalloc
import zipfile
from io import BytesIO
from random import Random
from typing import Any

import numpy as np
import pytest

import tracegraph
from tests.programs import exported
from tests.unit.saving.mutations import _entries, mutated, originals, outcome, repacked
from tracegraph import errors
from tracegraph.ir import op
from tracegraph.ir.stored import upgrades
from tracegraph.saving.container import MANIFEST, SavedContainer, packed


def test_mutations_are_refused_by_our_errors() -> None:
    random, files = Random(1), originals()
    found = {outcome(mutated(files[n % len(files)], random)) for n in range(400)}
    assert {"DamagedFileError", "MalformedProgramError", "loaded"} <= found


@pytest.mark.parametrize("data", [b"", b"PK\5\6" + bytes(18), b"x" * 1000, bytes(100)])
def test_what_is_no_file_of_ours(data: bytes) -> None:
    with pytest.raises(errors.DamagedFileError):
        tracegraph.load(data)


def changed(name: str, change: Any, entry: str = "program/0.json") -> bytes:
    data = bytes(exported.exported(name))
    document = json.loads(_entries(data)[entry])
    change(document)
    return repacked(data, {entry: document})


def test_a_changed_constant_is_recognised() -> None:
    data = bytearray(bytes(exported.exported("constants")))
    place = data.find(exported.TABLE.tobytes())
    assert place % 64 == 0
    data[place] ^= 1
    with pytest.raises(errors.DamagedFileError, match="constants/"):
        tracegraph.load(bytes(data))


@pytest.mark.parametrize("declared", [100, 40_000_000])
def test_entries_inflate_to_what_they_declare_and_files_bound_that(declared: int) -> None:
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, b" " * 40_000_000)
    data = written.getvalue().replace(struct.pack("<I", 40_000_000), struct.pack("<I", declared))
    tracemalloc.start()
    try:
        with pytest.raises(errors.DamagedFileError, match="CRC" if declared < 1000 else "declare"):
            tracegraph.load(data)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_large_and_random_constants_are_stored_and_aligned() -> None:
    table, noise = np.ones(1 << 16), np.random.default_rng(0).bytes(1 << 12)
    given = {"a.json": b"[1, 1]" * 400_000, "b": table.tobytes(), "c": noise, "d": bytes(9_000)}
    container = SavedContainer(data := packed({}, given))
    assert all(container.entry(name) == given[name] for name in given)
    with zipfile.ZipFile(BytesIO(data)) as archive:
        kinds = {info.filename: info.compress_type for info in archive.infolist()}
    assert [kinds[name] for name in "bcd"] == [zipfile.ZIP_STORED] * 2 + [zipfile.ZIP_DEFLATED]
    assert kinds["a.json"] == zipfile.ZIP_STORED  # it would shrink too much to be believed
    assert data.find(table.tobytes()) % 64 == data.find(noise) % 64 == 0


def test_newer_files_say_what_they_need() -> None:
    with pytest.raises(errors.ExportVersionError, match="schema"):
        tracegraph.load(changed("rules", lambda d: d.update(version=[2, 0]), MANIFEST))
    newer = changed("rules", lambda d: d.update(version=[1, 7], more="ignored"), MANIFEST)
    assert tracegraph.load(newer)(exported.X).shape == (8,)
    with pytest.raises(errors.ExportVersionError, match=r"'multiply', version 2.*install a newer"):
        tracegraph.load(changed("rules", lambda d: d["ops"].update(multiply=2)))
    with pytest.raises(errors.ExportVersionError, match="'frobnicate', version 1"):
        tracegraph.load(changed("rules", lambda d: d["ops"].update(frobnicate=1)))


def test_an_extent_with_a_name_is_refused() -> None:
    with pytest.raises(errors.MalformedProgramError, match="is a name"):
        tracegraph.load(changed("rules", lambda d: d["types"].append(["int8", [{"dim": "n"}]])))


def test_an_op_of_a_higher_version_takes_files_of_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Version 2 of an op has an attribute in place of another, which files of version 1 have."""

    def total(x: Any) -> Any:
        return np.cumsum(x)

    def old(document: Any) -> None:
        for eqn in document["body"]["eqns"]:
            if eqn["op"] == "cumsum":
                eqn["attrs"] = {"reach": [8, eqn["attrs"]["axis"]]}

    def upgrade(eqn: dict[str, Any]) -> dict[str, Any]:
        return {**eqn, "attrs": {"axis": eqn["attrs"]["reach"][1]}}

    data = bytes(tracegraph.export(total, exported.X))
    document = json.loads(_entries(data)["program/0.json"])
    old(document)
    data = repacked(data, {"program/0.json": document})
    assert document["ops"]["cumsum"] == 1
    with pytest.raises(errors.MalformedProgramError):
        tracegraph.load(data)
    second = dataclasses.replace(op.get("cumsum"), version=2)
    monkeypatch.setitem(op._REGISTRY, "cumsum", second)
    with pytest.raises(errors.ExportVersionError, match=r"'cumsum', version 1.*save it again"):
        tracegraph.load(data)
    monkeypatch.setitem(upgrades.UPGRADES, ("cumsum", 1), upgrade)
    loaded = tracegraph.load(data)
    assert loaded.requires["cumsum"] == 2
    np.testing.assert_array_equal(loaded(exported.X), np.cumsum(exported.X))
    newer = bytes(loaded)
    monkeypatch.undo()
    with pytest.raises(errors.ExportVersionError, match=r"'cumsum', version 2.*has version 1"):
        tracegraph.load(newer)


def test_equations_of_older_ops_are_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(eqn: dict[str, Any]) -> dict[str, Any]:
        return {**eqn, "op": "multiply"}

    def old(document: Any) -> None:
        def each(region: Any) -> None:
            for eqn in region["eqns"]:
                eqn["op"] = {"multiply": "times"}.get(eqn["op"], eqn["op"])
                for inner in eqn.get("regions", ()):
                    each(inner)

        document["ops"]["times"] = document["ops"].pop("multiply")
        each(document["body"])

    data = changed("rules", old)
    with pytest.raises(errors.ExportVersionError, match="'times'"):
        tracegraph.load(data)
    monkeypatch.setitem(upgrades.UPGRADES, ("times", 1), rename)
    found, expected = tracegraph.load(data)(exported.X), exported.rules(exported.X)
    assert found.tolist() == expected.tolist()
