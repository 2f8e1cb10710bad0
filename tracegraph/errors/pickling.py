"""Pickling: an error raised in another process arrives as it was raised.

Most classes are constructed from what their message is about, which they do not keep. So the
message, the attributes and the notes are pickled.
"""

from __future__ import annotations

import copyreg
from typing import Any


def by_content(error: BaseException) -> tuple[Any, ...]:
    """An error in the form that `copyreg` takes: restored without ``__init__`` of its class."""
    return copyreg.__newobj__, (type(error), *error.args), vars(error)  # type: ignore[attr-defined]
