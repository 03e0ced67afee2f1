"""Isolate failing cases, so that the others are computed unchanged.

A call that runs out of memory is made again with half as many cases, and the rest goes on at that
size. A call that fails for any other reason is halved until the case at fault stands alone; its row
then says why. Since a row does not depend on the rows beside it, the others come out as if nothing
had happened. A call that takes too long is ended from outside: `child` makes it in a process of its
own.
"""

from collections.abc import Callable

import numpy as np

from whorl.sweep.compute import NUMBERS, Rows

Call = Callable[[np.ndarray, int], Rows]  # places of cases and the chunk, to their rows
SMALLEST = 64  # pairs of the smallest call there is


def out_of_memory(wrong: BaseException) -> bool:
    """Whether a failure is one of memory, in Python or in XLA."""
    return (
        isinstance(wrong, MemoryError)
        or "RESOURCE_EXHAUSTED" in str(wrong)
        or "out of memory" in str(wrong).lower()
    )


def careful(call: Call, count: int, chunk: int, part: int) -> Rows:
    """The rows of `count` cases, `part` of them in a call as long as they fit."""
    parts: list[tuple[np.ndarray, Rows]] = []
    todo = [np.arange(count)]
    while todo:
        places = todo.pop(0)
        if len(places) > part:
            todo[:0] = [places[:part], places[part:]]
            continue
        try:
            parts.append((places, call(places, chunk)))
        except Exception as wrong:
            if out_of_memory(wrong):
                part, chunk, again = _smaller(len(places), part, chunk)
                if again:
                    todo.insert(0, places)
                else:
                    parts.append(
                        (places, failed(len(places), f"out of memory with {chunk} pairs in a call"))
                    )
                continue
            if len(places) == 1 or (
                isinstance(wrong, TimeoutError) and _hopeless(call, places, chunk)
            ):
                parts.append((places, failed(len(places), said(wrong))))
                continue
            middle = len(places) // 2
            todo[:0] = [places[:middle], places[middle:]]
    return _joined(parts)


def _smaller(count: int, part: int, chunk: int) -> tuple[int, int, bool]:
    """The next smaller size of a call, and whether there is one.

    Cases first: only below one chunk does the compiled shape change.
    """
    if count > chunk:
        return max(chunk, min(part, count) // 2 // chunk * chunk), chunk, True
    if chunk > SMALLEST:
        return part, max(SMALLEST, chunk // 2 // SMALLEST * SMALLEST), True
    return part, chunk, False


def _hopeless(call: Call, places: np.ndarray, chunk: int) -> bool:
    """Whether it is not one case that takes too long but all.

    Within a chunk, both its ends do by themselves.
    """
    if len(places) > chunk or len(places) < 3:
        return False
    for place in (places[:1], places[-1:]):
        try:
            call(place, chunk)
        except TimeoutError:
            continue
        except Exception:
            return False
        return False
    return True


def said(wrong: BaseException) -> str:
    """A failure in one line."""
    return " ".join(f"{type(wrong).__name__}: {wrong}".split())[:500]


def failed(count: int, reason: str) -> Rows:
    """Rows of cases without a result."""
    found: Rows = {name: np.full(count, np.nan) for name in NUMBERS}
    return found | {
        "made": np.zeros(count, dtype=np.int64),
        "reason": np.full(count, reason, dtype=object),
    }


def _joined(parts: list[tuple[np.ndarray, Rows]]) -> Rows:
    order = np.argsort(np.concatenate([places for places, _ in parts]))
    return {name: np.concatenate([rows[name] for _, rows in parts])[order] for name in parts[0][1]}
