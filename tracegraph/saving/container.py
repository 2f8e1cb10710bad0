"""Containers: a zip of named entries, none of them compressed, each with its digest.

What is read may be anything. Nothing larger than the file is allocated, as no entry is compressed.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from typing import Any

from tracegraph.errors import DamagedFileError, ExportVersionError

FORMAT = "tracegraph"

VERSION = (1, 0)
"""Major and minor version of the schema: files of a newer minor version are read."""

MANIFEST = "manifest.json"

ALIGNMENT = 64
"""Bytes to which entries are aligned, so that constants can be mapped to memory."""

MOST_ENTRIES = 10_000

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all entries: the same programs make the same file."""

_HEADER = 30
"""Bytes of an entry's header before its name."""

_PADDING = 0xD935
"""The extra field that Android's zipalign pads with."""


def packed(manifest: Mapping[str, Any], entries: Mapping[str, bytes]) -> bytes:
    """The bytes of a container: a manifest, which gets digests, and entries by name."""
    digests = {name: sha256(data).hexdigest() for name, data in entries.items()}
    head = {"format": FORMAT, "version": list(VERSION), **manifest, "sha256": digests}
    everything = {MANIFEST: json.dumps(head, indent=1).encode(), **entries}
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_STORED) as archive:
        for name, data in everything.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            start = written.tell() + _HEADER + len(name.encode()) + 4
            missing = -start % ALIGNMENT
            info.extra = _PADDING.to_bytes(2, "little") + missing.to_bytes(2, "little")
            info.extra += bytes(missing)
            archive.writestr(info, data)
    return written.getvalue()


class SavedContainer:
    """The entries of a container that is read.

    Raises:
        DamagedFileError: it is none, or was changed.
        ExportVersionError: its schema is newer than this package.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
            infos = self._archive.infolist()
        except Exception as error:  # of zipfile: BadZipFile, struct.error, OverflowError, …
            raise DamagedFileError(_said(error)) from error
        self._infos = {info.filename: info for info in infos}
        if len(infos) > MOST_ENTRIES or len(self._infos) < len(infos):
            raise DamagedFileError("it has too many entries, or two of one name")
        for info in infos:
            plain = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
            if not plain or info.file_size != info.compress_size or info.file_size > len(data):
                raise DamagedFileError(f"the entry {info.filename!r} is compressed")
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
        try:
            return self._archive.read(info)
        except Exception as error:  # as above, and EOFError
            raise DamagedFileError(_said(error)) from error

    def _json(self, name: str, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"the entry {name!r} is no JSON: {_said(error)}") from error


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
