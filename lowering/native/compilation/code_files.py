"""Object files on disk: none is compiled twice, by any process of the user.

A key is made of the text of the module, of the library's functions, and of all that compiles it.
Where the folder cannot be used, nothing is kept.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from lowering.disk_cache.location import code_store
from lowering.disk_cache.store import CodeStore
from lowering.native.compilation.compiler import Level, compiler_identity
from lowering.native.library.load import ModuleText


def key_of(module: ModuleText, level: Level) -> bytes:
    """The key of a module's code."""
    return sha256("\0".join((*compiler_identity(level), *module.parts())).encode()).digest()


def kept(module: ModuleText, level: Level) -> bytes | None:
    """The object file of a module, if it was kept."""
    store = _store()
    return None if store is None else store.get(key_of(module, level))


def keep(module: ModuleText, level: Level, code: bytes) -> None:
    """Keep the object file of a module, where that is possible."""
    store = _store()
    if store is not None:
        with suppress(OSError):
            store.put(key_of(module, level), code)


def why_not_kept() -> str:
    """What keeps code from being kept on disk; "" if nothing is known to."""
    try:
        code_store()
    except (OSError, RuntimeError) as error:
        return str(error)
    return ""


def _store() -> CodeStore | None:
    try:
        return code_store()
    except (OSError, RuntimeError):  # `why_not_kept` says why
        return None
