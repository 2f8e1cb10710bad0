"""Generated functions: Python source written for one case and compiled, with its constants at hand.

Such a function loops over nothing and looks nothing up, which matters in what every call goes
through. Compiling takes 20 µs a line: so texts are short, and callers cache what they define by
what the text depends on. This is the only use of `exec` in tracegraph and lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any


def define(text: str, name: str, about: str, scope: Mapping[str, Any]) -> Callable[..., Any]:
    """The function `name` that a text defines, with the names in `scope` as globals.

    Tracebacks show `about` in place of the file, and `user_source` knows it by its first word.

    >>> define("def twice(x): return two * x", "twice", "an example", {"two": 2})(4)
    8
    """
    names = dict(scope)
    exec(compile(text, f"<tracegraph: {about}>", "exec"), names)  # noqa: S102
    defined: Callable[..., Any] = names.pop(name)  # or it would be in a cycle with its globals
    return defined


def each(template: str, numbers: Iterable[int]) -> str:
    """A template once for each number.

    >>> each("r{i}, ", range(2))
    'r0, r1, '
    """
    return "".join([template.format(i=i) for i in numbers])
