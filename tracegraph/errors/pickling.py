"""Pickling: errors come out of other processes as they were raised.

Most are made from what their message tells of, which is not kept. So the message is, and whatever
attributes and notes they have.
"""

from __future__ import annotations

from typing import Any


def by_content(error: BaseException) -> tuple[Any, ...]:
    """What `copyreg` takes to make an error anew."""
    return _made, (type(error), error.args, vars(error))


def _made(
    class_: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]
) -> BaseException:
    error = class_.__new__(class_, *args)
    vars(error).update(attributes)
    return error
