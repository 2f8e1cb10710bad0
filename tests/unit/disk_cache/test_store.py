"""Files of compiled code: whole or not there, bounded, and of several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lowering.disk_cache.store import ABANDONED, LEFT, CodeStore
from tests.helpers.processes import environment

MANY = 1 << 20


def entries(folder: Path) -> list[Path]:
    return [path for path in (folder / "entries").rglob("*") if path.is_file()]


def key(number: int) -> bytes:
    return bytes([number]) * 32


def test_what_is_put_is_there_for_others(tmp_path: Path) -> None:
    CodeStore(tmp_path, MANY).put(key(1), b"code")
    store = CodeStore(tmp_path, MANY)
    assert store.get(key(1)) == b"code"
    assert store.get(key(2)) is None
    store.put(key(1), b"other code")
    assert store.get(key(1)) == b"other code"


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "longer"])
def test_damaged_entries_are_not_there(tmp_path: Path, damage: str) -> None:
    store = CodeStore(tmp_path, MANY)
    store.put(key(1), b"some code")
    (entry,) = entries(tmp_path)
    kept = entry.read_bytes()
    damaged = {
        "cut": kept[:-3],
        "flip": kept[:-1] + bytes([kept[-1] ^ 1]),
        "empty": b"",
        "longer": kept + b"0",
    }
    entry.write_bytes(damaged[damage])
    assert store.get(key(1)) is None
    store.put(key(1), b"some code")
    assert entry.read_bytes() == kept


def test_the_entries_unused_for_longest_go_first(tmp_path: Path) -> None:
    size = 1000
    store = CodeStore(tmp_path, 10 * size)
    for number in range(9):
        store.put(key(number), bytes(size - 32))
    for number, entry in ((n, store._path(key(n))) for n in range(9)):
        os.utime(entry, (1000 + number, 1000 + number))
    assert store.get(key(0)) is not None  # used: no longer the oldest
    store.put(key(20), bytes(size - 32))
    assert len(entries(tmp_path)) == 10
    store.put(key(21), bytes(size - 32))
    there = [n for n in (*range(9), 20, 21) if store.get(key(n)) is not None]
    assert there == [0, *range(3, 9), 20, 21]
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= LEFT * 10 * size


def test_another_process_counts_what_it_finds(tmp_path: Path) -> None:
    for number in range(20):
        CodeStore(tmp_path, 1000).put(key(number), bytes(168))
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= 1000


def test_unfinished_files_of_killed_processes_go(tmp_path: Path) -> None:
    store = CodeStore(tmp_path, MANY)
    (tmp_path / "tmp").mkdir()
    old, new = tmp_path / "tmp" / "old", tmp_path / "tmp" / "new"
    for path in (old, new):
        path.write_bytes(b"half")
    before = new.stat().st_mtime - 2 * ABANDONED
    os.utime(old, (before, before))
    store.put(key(1), b"code")
    assert [*(tmp_path / "tmp").iterdir()] == [new]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CodeStore(tmp_path, MANY)

    def refuse(one: str, other: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        store.put(key(1), b"code")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


WRITES = """
import sys
from pathlib import Path
from lowering.disk_cache.store import CodeStore
store = CodeStore(Path(sys.argv[1]), 20_000)
for round in range(40):
    for number in range(8):
        key = bytes([number]) * 32
        found = store.get(key)
        assert found in (None, bytes([number]) * 5000), "a part of an entry"
        store.put(key, bytes([number]) * 5000)
"""


def test_processes_that_write_and_delete_the_same_entries_see_whole_ones(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITES, str(tmp_path)],
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [
        ("", 0)
    ] * 3
    assert [*(tmp_path / "tmp").iterdir()] == []
