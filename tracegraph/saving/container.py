"""Containers: a zip of named entries, each with its digest.

Documents, machine code and small entries that shrink are deflated, all others are stored and
aligned. What is read may be anything: entries are as large as they declare, and the file bounds
what they may declare together.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from io import BytesIO
from typing import Any

from tracegraph.errors import DamagedFileError, ExportVersionError

FORMAT = "tracegraph"

VERSION = (1, 0)
"""Major and minor version of the schema: files of a newer minor version are read."""

MANIFEST = "manifest.json"

FUNCTIONS = "functions.json"
"""The entry of the functions and kernels of the user's, if there are any."""

ALIGNMENT = 64
"""Bytes to which stored entries are aligned, so that constants can be mapped to memory."""

MOST_ENTRIES = 10_000

SMALL = 1 << 16
"""Bytes of the largest constants that are deflated, where that halves them."""

MOST_INFLATED = 1 << 20
"""Bytes that all deflated entries may have together, beside `MOST_RATIO` times the file's own."""

MOST_RATIO = 16
"""How much smaller deflating makes programs: 7 times is typical. Python needs some 30 bytes for one
of JSON, so that larger ratios would let a small file take much memory.
"""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all entries: the same programs make the same file."""

_HEADER = 30
"""Bytes of an entry's header before its name."""

_LEVEL = 9
"""Of deflating: programs are small."""

_PADDING = 0xD935
"""The extra field that Android's zipalign pads with."""


def packed(manifest: Mapping[str, Any], entries: Mapping[str, bytes]) -> bytes:
    """The bytes of a container: a manifest, which gets digests, and entries by name."""
    digests = {name: sha256(data).hexdigest() for name, data in entries.items()}
    head = {"format": FORMAT, "version": list(VERSION), **manifest, "sha256": digests}
    everything = {MANIFEST: json.dumps(head, indent=1).encode(), **entries}
    deflated = _deflated(everything)
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name, data in everything.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            if name in deflated:
                archive.writestr(info, data, zipfile.ZIP_DEFLATED, _LEVEL)
                continue
            start = written.tell() + _HEADER + len(name.encode()) + 4
            missing = -start % ALIGNMENT
            info.extra = _PADDING.to_bytes(2, "little") + missing.to_bytes(2, "little")
            info.extra += bytes(missing)
            archive.writestr(info, data)
    return written.getvalue()


def _deflated(entries: Mapping[str, bytes]) -> set[str]:
    """The entries that are deflated: what a reader takes, whatever the others are."""
    found, beyond = set(), 0
    for name, data in entries.items():
        if len(data) > SMALL and not name.endswith((".json", ".cubin")):
            continue
        size = len(zlib.compress(data, _LEVEL))
        if size > len(data) // 2:
            continue
        if len(data) > MOST_RATIO * size:
            if beyond + len(data) > MOST_INFLATED:
                continue
            beyond += len(data)
        found.add(name)
    return found


class SavedContainer:
    """The entries of a container that is read.

    Raises:
        DamagedFileError: it is none, or was changed.
        ExportVersionError: its schema is newer than this package.
    """

    def __init__(self, data: bytes) -> None:
        try:
            # Names are ASCII; to read others as code page 437, Python would import that first.
            self._archive = zipfile.ZipFile(BytesIO(data), metadata_encoding="utf-8")
            infos = self._archive.infolist()
        except Exception as error:  # of zipfile: BadZipFile, struct.error, OverflowError, …
            if data.startswith(b"TGRAPH"):
                raise DamagedFileError(
                    "Exported.save_flat has, for C; load what Exported.save writes"
                ) from None
            raise DamagedFileError(_said(error)) from error
        self._infos = {info.filename: info for info in infos}
        if len(infos) > MOST_ENTRIES or len(self._infos) < len(infos):
            raise DamagedFileError("it has too many entries, or two of one name")
        self._contents: dict[str, bytes] = {}
        _check_sizes(infos, len(data))
        manifest = self._json(MANIFEST, self._read(MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise DamagedFileError("its manifest is of another format")
        match manifest.get("version"):
            case [int(major), int()]:
                if major > VERSION[0]:
                    raise ExportVersionError(f"version {major} of the schema", f"{VERSION[0]}")
            case _:
                raise DamagedFileError("its manifest has no version")
        self.manifest: dict[str, Any] = manifest
        digests = manifest.get("sha256")
        self._digests: dict[str, Any] = digests if isinstance(digests, dict) else {}

    @property
    def names(self) -> Collection[str]:
        """The names of the entries."""
        return self._infos.keys()

    def entry(self, name: Any) -> bytes:
        """The bytes of an entry, whose digest is right.

        Raises:
            DamagedFileError: there is none of the name, or its digest is another.
        """
        data = self._read(name)
        if sha256(data).hexdigest() != self._digests.get(name):
            raise DamagedFileError(f"the entry {name!r} was changed")
        return data

    def json(self, name: Any) -> Any:
        """The document of an entry; raises as `entry`."""
        return self._json(name, self.entry(name))

    def _read(self, name: Any) -> bytes:
        info = self._infos.get(name) if isinstance(name, str) else None
        if info is None:
            raise DamagedFileError(f"it has no entry {name!r}")
        if name not in self._contents:
            try:
                with self._archive.open(info) as opened:
                    # With a size, nothing beyond it is inflated, whatever the entry holds.
                    self._contents[name] = opened.read(info.file_size)
            except Exception as error:  # as above, EOFError, zlib.error
                raise DamagedFileError(_said(error)) from error
            if len(self._contents[name]) != info.file_size:
                raise DamagedFileError(f"the entry {name!r} is shorter than it says")
        return self._contents[name]

    def _json(self, name: str, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"the entry {name!r} is no JSON: {_said(error)}") from error


def _check_sizes(infos: Sequence[zipfile.ZipInfo], file_bytes: int) -> None:
    """Raise DamagedFileError if entries are of a kind that is not written, or declare too much."""
    stored = inflated = 0
    for info in infos:
        if info.flag_bits & 1:
            raise DamagedFileError(f"the entry {info.filename!r} is encrypted")
        if info.compress_type == zipfile.ZIP_DEFLATED:
            inflated += info.file_size
        elif info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size:
            stored += info.file_size
        else:
            raise DamagedFileError(f"the entry {info.filename!r} is compressed in another way")
    if stored > file_bytes or inflated > MOST_INFLATED + MOST_RATIO * file_bytes:
        raise DamagedFileError("its entries declare more bytes than such a file can have")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
