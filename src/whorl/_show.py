"""Show results as text and, in notebooks, as small tables.

Text of results is laid out in lines; two blanks or more stand between a name and its value. The
table is made of these lines, so that there is one account of a result and not two.
"""

import dataclasses
import functools
import html
import re
from collections.abc import Callable
from typing import Any, cast

import jax

from whorl import _check


class Shown:
    """A result that prints itself; traced values are left to the `repr` of what it inherits from.

    Examples:
        >>> wh.Task.random(3, 2, seed=0)
        6 samples with 3 inputs and 2 outputs
        >>> wh.Task.random(3, 2, seed=0)._repr_html_()
        '<p>6 samples with 3 inputs and 2 outputs</p>'
    """

    __slots__ = ()

    def __init_subclass__(cls, **how: Any) -> None:
        super().__init_subclass__(**how)
        if told := cls.__dict__.get("__str__"):
            type.__setattr__(cls, "__str__", _of_known(told))

    def __repr__(self) -> str:
        return str(self) if _check.known(self) else super().__repr__()

    def _repr_html_(self) -> str:
        """The same lines as sentences and tables."""
        return as_html(repr(self))


def _of_known(told: Callable[[Any], str]) -> Callable[[Any], str]:
    """Use `repr` for traced values, because their numbers are unknown."""

    @functools.wraps(told)
    def said(self: Any) -> str:
        return told(self) if _check.known(self) else repr(self)

    return said


class Valued:
    """A law, a rule or a policy, with the values of its numbers.

    Examples:
        >>> wh.rotational(alpha=1.0, omega=2.0, base=wh.leaky(0.1))
        Rotational(alpha=1, omega=2, base=Leaky(mu=0.1), skew=None)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        if not _check.known(self):
            return super().__repr__()
        values = (
            (one.name, getattr(self, one.name)) for one in dataclasses.fields(cast(Any, self))
        )
        return f"{type(self).__name__}({', '.join(f'{k}={_short(v)}' for k, v in values)})"


def _short(value: Any) -> str:
    if isinstance(value, jax.Array):
        return f"{value:g}" if value.ndim == 0 else f"{value.dtype}{list(value.shape)}"
    return getattr(value, "__name__", None) or repr(value)


def as_html(text: str) -> str:
    r"""Lines of text as HTML: those with columns are rows of a table, the others are sentences.

    Examples:
        >>> from whorl import _show
        >>> _show.as_html("It turns.\n  index  0.5")
        '<p>It turns.</p><table><tr><th>index</th><td>0.5</td></tr></table>'
    """
    made = []
    for line in filter(str.strip, text.splitlines()):
        first, *rest = (html.escape(cell) for cell in re.split(r"\s{2,}", line.strip()))
        if line.startswith(" " * 10):  # a second line of the value before it
            first, rest = "", [first, *rest]
        cells = "".join(f"<td>{cell}</td>" for cell in rest)
        made.append(f"<tr><th>{first}</th>{cells}</tr>" if rest else f"<p>{first}</p>")
    return re.sub(r"(?:<tr>.*?</tr>)+", r"<table>\g<0></table>", "".join(made))


def plural(count: int, noun: str, many: str = "") -> str:
    """A number with its noun: `1 sample`, `2 samples`; `many` is a plural that takes no s."""
    return f"{count} {noun}" if count == 1 else f"{count} {many or noun + 's'}"
