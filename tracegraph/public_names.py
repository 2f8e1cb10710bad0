"""The public names of a package: what its `__init__` imports, by name or by `*`.

A package says each public name once, in an import or in the `__all__` of one of its modules. Type
checkers read those; `import *`, `dir` and `help` read `__all__` of the package.
"""

import sys
from types import ModuleType


def set_all(package: str, *more: str, kind: type = object) -> list[str]:
    """Set `__all__` of a package to its names but modules and private ones, and `more`; return it.

    With `kind`, names of other things are left out.

    >>> from types import ModuleType
    >>> sys.modules["circles"] = circles = ModuleType("circles")
    >>> circles.pi, circles._two_pi, circles.sys, circles.__version__ = 3.14, 6.28, sys, "1"
    >>> set_all("circles", "__version__")
    ['__version__', 'pi']
    >>> del sys.modules["circles"]
    """
    module = sys.modules[package]
    found = {
        name
        for name, value in vars(module).items()
        if isinstance(value, kind) and not (name.startswith("_") or isinstance(value, ModuleType))
    }
    names = sorted((found - {"TYPE_CHECKING"}).union(more))
    vars(module)["__all__"] = names
    return names
