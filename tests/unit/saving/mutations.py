"""Damaged files: `load` refuses each with an error of its own, quickly, and with little memory.

``python -m tests.unit.saving.mutations 100000 [SEED]`` tries so many, prints what came out, and
fails at anything else than an `ExportFormatError`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import traceback
import warnings
import zipfile
from collections import Counter
from contextlib import suppress
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import tracegraph
from tests.programs.exported import FOLDER, exported
from tracegraph.errors import ExportFormatError
from tracegraph.saving.container import MANIFEST, packed

MOST_SECONDS = 1.0
MOST_BYTES = 100 << 20

VALUES = (
    *(None, True, 0, 1, -1, 2, 3, 64, 255, 1 << 31, 1 << 63, 10**30, 0.5, "", "x", "sum", "i8"),
    *([], [0], [1, 2, 3], {}, {"float": "nan"}, {"dtype": "bfloat16"}, {"slice": [None, 1, 0]}),
    *({"literal": "00", "type": 0}, {"tuple": []}, {"number": "00", "dtype": "int8"}, "*"),
)
"""What takes the place of a part of a document."""


def repacked(data: bytes, documents: dict[str, Any] | None = None) -> bytes:
    """A file whose checksums and digests are right, with other documents in some entries."""
    entries = _entries(data)
    head = json.loads(entries.pop(MANIFEST))
    for name, document in (documents or {}).items():
        if name == MANIFEST:
            head = document
        else:
            entries[name] = _text(document)
    if not isinstance(head, dict):
        head = {"format": head}
    head.pop("sha256", None)
    kept = {name: head[name] for name in ("format", "version") if name in head}
    return packed({**head, **kept}, entries)


def _text(document: Any) -> bytes:
    return document if isinstance(document, bytes) else json.dumps(document).encode()


def _entries(data: bytes) -> dict[str, bytes]:
    """The entries of a file, whose checksums may be wrong."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        found = {}
        for info in archive.infolist():
            info.CRC = None  # type: ignore[assignment] - it is not compared
            found[info.filename] = archive.read(info)
        return found


def mutated(data: bytes, random: Random) -> bytes:
    """The file with a few changes: of bytes, or of documents, with checksums that are right."""
    if random.random() < 0.3:
        return _with_other_bytes(data, random)
    entries = _entries(data)
    documents = [name for name in entries if name.endswith(".json") and name != MANIFEST]
    name = random.choice([MANIFEST, *documents, *documents])
    if random.random() < 0.2 and name != MANIFEST:
        return repacked(data, {name: _with_other_bytes(entries[name], random)})
    document = json.loads(entries[name])
    try:
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            document = _with_another_part(document, random)
        return repacked(data, {name: document})
    except RecursionError:  # parts were put into themselves: such a text is not written by Python
        return repacked(data, {"program/0.json": b"[" * 100_000})


def _with_other_bytes(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    kind = random.randrange(4)
    if kind == 0:
        del changed[random.randrange(len(changed)) :]
    elif kind == 1:
        start = random.randrange(len(changed))
        changed[start:start] = random.randbytes(random.randrange(1, 9))
    elif kind == 2:
        start = random.randrange(len(changed))
        del changed[start : start + random.randrange(1, 99)]
    else:
        for _ in range(random.randrange(1, 5)):
            changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _with_another_part(document: Any, random: Random) -> Any:
    """The document with a random part replaced, dropped, repeated or exchanged."""
    places = list(_places(document))
    if not places:
        return deepcopy(random.choice(VALUES))
    holder, key = random.choice(places)
    kind = random.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, deepcopy(holder[key]))
    elif kind == 2:
        other, place = random.choice(places)
        with suppress(IndexError, KeyError):
            holder[key] = deepcopy(other[place])
    elif kind == 3 and type(holder[key]) is int:
        holder[key] += random.choice((-1, 1, 7, 1 << 20, 1 << 40))
    else:
        holder[key] = deepcopy(random.choice(VALUES))
    return document


def _places(document: Any) -> Any:
    items: Any = ()
    if isinstance(document, dict):
        items = list(document.items())
    elif isinstance(document, list):
        items = list(enumerate(document))
    for key, value in items:
        yield document, key
        yield from _places(value)


def outcome(data: bytes) -> str:
    """What `load` makes of a file: "loaded", or the name of one of our errors."""
    start = time.process_time()  # other processes may have the processors
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded = tracegraph.load(data)
            assert len(loaded.programs) > 0  # those of a file with targets are read now
            assert loaded.targets is not None
    except ExportFormatError as error:
        found = type(error).__name__
    else:
        found = "loaded"
    seconds = time.process_time() - start
    assert seconds < MOST_SECONDS, f"{seconds:.1f} s"
    return found


def with_a_target() -> bytes:
    """A file with machine code, which takes a second to make."""
    found = exported("own")
    found.add_target("sm_90")
    return bytes(found)


def originals() -> list[bytes]:
    return [path.read_bytes() for path in sorted(Path(FOLDER).rglob("*.tg"))]


def _used() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main(count: int, seed: int = 0) -> int:
    files, random, found = [*originals(), with_a_target()], Random(seed), Counter[str]()
    for data in files:
        outcome(data)
    for number in range(min(count, 2000)):  # caches of types and of type rules fill up
        outcome(mutated(files[number % len(files)], random))
    failures, before, longest = 0, _used(), 0.0
    for number in range(count):
        data = mutated(files[number % len(files)], random)
        start = time.process_time()
        try:
            found[outcome(data)] += 1
        except BaseException:
            failures += 1
            if failures <= 5:
                traceback.print_exc()
                Path(f"/tmp/mutation_{seed}_{number}.tg").write_bytes(data)
        longest = max(longest, time.process_time() - start)
    more = _used() - before
    print(f"{count} files: {dict(found.most_common())}, {failures} failures")
    print(f"longest {longest * 1e3:.0f} ms, {more >> 20} MB more at the peak")
    return int(failures > 0 or more > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
