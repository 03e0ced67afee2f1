"""The one cache of the explorer: what was computed last, by function and arguments."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
KEPT = 256  # results, of all functions together; a long run of a deep network takes 1 MB


def kept(function: Function) -> Function:
    """Decorate a pure function whose arguments can be hashed: its last results are kept."""

    @functools.wraps(function)
    def remembered(*arguments: Any) -> Any:
        return _result(function, *arguments)

    return remembered  # type: ignore[return-value] # it takes and returns the same


@functools.lru_cache(maxsize=KEPT)
def _result(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)
