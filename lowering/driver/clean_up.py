"""Clean-up: results of driver calls that free something, where nobody can handle an error.

They run when an object is collected, in any thread and at any point. So a failure is a warning; and
none where nothing can be done about it any more.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from lowering.driver.error_checks import LOST, SUCCESS, message_of
from tracegraph.errors import CleanUpWarning

_GONE = LOST | {
    "CUDA_ERROR_DEINITIALIZED",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_NOT_INITIALIZED",
}
"""The driver has shut down, or the context or the device is lost: all that it held is gone."""


def freed(what: str, operation: str, answer: tuple[Any, ...]) -> None:
    """Warn if an operation that was to free something has failed.

    Raises:
        CleanUpWarning: warnings are errors.
    """
    result, *_ = answer
    if result == SUCCESS or result.name in _GONE or sys.is_finalizing():
        return
    warning = CleanUpWarning(what, operation, result.name, message_of(result))
    warnings.warn(warning, stacklevel=3)
