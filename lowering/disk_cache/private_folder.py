"""The folder of compiled code: only its user may be able to change what is in it.

Anyone who can write to it could put code there that this process then runs. So the
folder, what it is in, and its parts have to belong to the user or to root, and nobody else may
write to them. In a parent with the sticky bit, as /tmp, others can add files but not replace the
folder.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path


class UnsafeFolderError(RuntimeError):
    """Others can change what is in a folder."""


def make_private(folder: Path) -> Path:
    """The folder, resolved, and made for its user alone if it did not exist.

    Raises:
        UnsafeFolderError: others can change what is in it. Windows, which has other permissions,
            is not checked.
        OSError: it cannot be made or read.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = folder.resolve()
    if sys.platform != "win32":
        for part in _parts(folder):
            _require_safe(part, folder)
    return folder


def _parts(folder: Path) -> Iterator[Path]:
    """The folder, the folders in it, and those that it is in."""
    yield folder
    yield from (each for each in folder.iterdir() if each.is_dir())
    yield from folder.parents


def _require_safe(part: Path, folder: Path) -> None:
    status = part.stat()
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeFolderError(f"{part} belongs to another user (uid {status.st_uid})")
    others = status.st_mode & stat.S_IWOTH
    group = status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid)
    above = part in folder.parents
    if (others or group) and not (above and status.st_mode & stat.S_ISVTX):
        who = "all users" if others else f"the group with gid {status.st_gid}"
        raise UnsafeFolderError(
            f"{who} may write to {part} (its mode is {status.st_mode & 0o7777:o})"
        )


def _is_own_group(gid: int) -> bool:
    """Whether a group is the user's private one, as many systems make for each user."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:  # a user or group without a name, as in some containers
        return False
    return user.pw_gid == gid and set(group.gr_mem) <= {user.pw_name}
