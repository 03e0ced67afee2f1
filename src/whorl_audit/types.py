"""The few types that all files share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Whole = npt.NDArray[Any]
Parameters = dict[str, Any]
Table = dict[str, Array]


def shown(value: object) -> str:
    """A value in one line, cut to what fits into a sentence."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a very long number"
    return text if len(text) <= 80 else text[:77] + "..."


class UnreadableError(ValueError):
    """A folder that cannot be audited, in one sentence."""


class BrokenError(KeyError):
    """A table that other claims rest on, and that does not have the rows and columns it must."""


class Tables(dict[str, Table]):
    """The tables that have their columns and rows.

    Asking for another one is an error that names it.
    """

    def __missing__(self, name: str) -> Table:
        raise BrokenError(name)


@dataclass(frozen=True)
class Expected:
    """What a column should hold.

    Attributes:
        values: One value per row.
        tolerance: The largest error allowed, in units of the scale; zero asks for the same number.
        scale: What errors are measured by, one per row; None stands for the size of the value
            itself, or one where it is zero.
    """

    values: Array
    tolerance: float = 0.0
    scale: Array | None = None

    def errors(self, stored: Array) -> Array:
        """The error of every row."""
        size = np.abs(self.values) if self.scale is None else self.scale
        return np.abs(stored - self.values) / np.where(size > 0, size, 1.0)


Columns = dict[str, Expected]
Formulas = dict[str, Callable[[Tables, Parameters], Columns]]
