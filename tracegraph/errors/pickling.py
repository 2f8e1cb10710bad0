"""Pickling: errors come out of other processes as they were raised.

Most are made from what their message tells of, which is not kept. So the message is, and whatever
attributes and notes they have.
"""

from __future__ import annotations

import copyreg
from typing import Any


def by_content(error: BaseException) -> tuple[Any, ...]:
    """What `copyreg` takes to make an error anew, without the ``__init__`` of its class."""
    return copyreg.__newobj__, (type(error), *error.args), vars(error)  # type: ignore[attr-defined]
