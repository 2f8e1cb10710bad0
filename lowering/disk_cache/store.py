"""CodeStore: compiled code in files, by keys, for all processes of a user.

An entry is the SHA-256 of the code, then the code: one that is truncated or damaged is recognised.
A file is written under another name and then renamed, so that a reader sees all of it or nothing,
and of two processes that write the same entry the later one wins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from threading import Lock

DIGEST_BYTES = sha256().digest_size

LEFT = 0.9
"""The share of the most bytes that entries take after the oldest are deleted, so that the folder is
not read again for each new entry.
"""

ABANDONED = 3600.0
"""Seconds after which an unfinished file is one of a process that was killed."""


class CodeStore:
    """Compiled code by keys, in `folder`, which exists; entries of `most_bytes` at most together.

    The entries that were not used for the longest time are deleted.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = CodeStore(Path(folder), 1 << 20)
    ...     store.put(b"key", b"code")
    ...     print(store.get(b"key"), store.get(b"other"))
    b'code' None
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._entries, self._unfinished = folder / "entries", folder / "tmp"
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._nbytes: int | None = None  # of all entries, as far as this process knows

    def get(self, key: bytes) -> bytes | None:
        """The code of a key; None if there is none, or it is damaged or unreadable."""
        path = self._path(key)
        try:
            entry = path.read_bytes()
        except OSError:
            return None
        digest, code = entry[:DIGEST_BYTES], entry[DIGEST_BYTES:]
        if sha256(code).digest() != digest:
            return None
        with suppress(OSError):  # where others own the entry, or the folder is read-only
            os.utime(path)
        return code

    def put(self, key: bytes, code: bytes) -> None:
        """Keep the code of a key, in place of what was there.

        Raises:
            OSError: it cannot be written.
        """
        path = self._path(key)
        for folder in (path.parent, self._unfinished):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        entry = sha256(code).digest() + code
        number, name = mkstemp(dir=self._unfinished)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(entry)
            with suppress(OSError):  # ext4 writes a file to the disk that replaces one: 20 ms
                os.unlink(path)
            os.replace(name, path)
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            raise
        # not waited for: another thread counts this entry with all others when it reads the folder,
        # and in a child of this process it may not be there to give the lock back
        if self._lock.acquire(blocking=False):
            try:
                self._count(len(entry))
            finally:
                self._lock.release()

    def contents(self) -> tuple[int, int]:
        """The bytes and the number of all entries."""
        sizes = [status.st_size for _, status in _files(self._entries)]
        return sum(sizes), len(sizes)

    def clear(self) -> None:
        """Delete all entries.

        Raises:
            OSError: one cannot be deleted.
        """
        for path, _ in list(_files(self._entries)):
            path.unlink(missing_ok=True)  # another process may have deleted it
        self._nbytes = None

    def _count(self, added: int) -> None:
        self._nbytes = None if self._nbytes is None else self._nbytes + added
        if self._nbytes is None or self._nbytes > self._most_bytes:
            self._nbytes = self._trimmed()

    def _path(self, key: bytes) -> Path:
        name = key.hex()
        return self._entries / name[:2] / name[2:]

    def _trimmed(self) -> int:
        """Delete the oldest entries if all are too large together; the bytes of those that stay."""
        old = time.time() - ABANDONED
        for path, status in _files(self._unfinished):
            if status.st_mtime < old:
                with suppress(OSError):
                    path.unlink()
        found = sorted(_files(self._entries), key=lambda file: file[1].st_mtime)
        nbytes = sum(status.st_size for _, status in found)
        if nbytes <= self._most_bytes:
            return nbytes
        for path, status in found:
            if nbytes <= LEFT * self._most_bytes:
                break
            with suppress(OSError):  # on Windows another process may read it
                path.unlink(missing_ok=True)  # another process may have deleted it
                nbytes -= status.st_size
        return nbytes


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files of a folder and of those in it; others may delete them meanwhile."""
    for path in folder.rglob("*"):
        with suppress(OSError):
            status = path.stat()
            if path.is_file():
                yield path, status
