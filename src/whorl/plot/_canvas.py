"""Where a picture is drawn: on axes that are handed in, or on a new figure that shows itself.

Every function of `whorl.plot` returns what it drew on: the axes it was given, or else the figure.
"""

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from whorl.palette import DARK, INK, LIGHT, SERIES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Drawn = Any  # the axes that were handed in, or a new figure


def canvas(ax: "Axes | None", size: tuple[float, float], **kind: Any) -> tuple[Any, Drawn]:
    """The axes to draw on, and what to return; `size` is that of a new figure, in inches."""
    from matplotlib.axes import Axes

    if ax is None:
        made = figure(size)
        axes = made.add_subplot(**kind)
        axes._repr_png_ = made._repr_png_  # a notebook shows the axes as their figure
        return axes, made
    if not isinstance(ax, Axes):
        raise ValueError(f"ax must be one matplotlib Axes, but it is {type(ax).__name__}")
    projection = kind.get("projection", ax.name)
    if ax.name != projection:
        raise ValueError(
            f'ax must be made with projection="{projection}", but its projection is "{ax.name}"'
        )
    return ax, ax


def figure(size: tuple[float, float]) -> Any:
    """A figure of that size, or of the size that the current style asks for.

    It belongs to no window, and a notebook shows it whatever the backend.
    """
    from matplotlib import rcParams, rcParamsDefault
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            page = io.BytesIO()
            self.savefig(page, format="png", bbox_inches="tight")
            return page.getvalue()

    asked = rcParams["figure.figsize"]
    own = list(asked) != list(rcParamsDefault["figure.figsize"])
    return Picture(figsize=asked if own else size, layout="constrained")


@contextmanager
def fixed(look: Mapping[Any, Any]) -> Iterator[None]:
    """Draw with matplotlib's defaults and `look`, and restore the user's settings afterwards.

    Pages and files that a command writes are the same in every folder. A `matplotlibrc` found in
    the current folder may come from somebody else, and its `text.latex.preamble` is a program.
    """
    import matplotlib as mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A letter that matplotlib's own font lacks is drawn as a box; pages have names as text too.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(look)
        yield


def ink() -> str:
    """The colour of lines and marks that stand on the ground: that of the style's own text."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def ground() -> str:
    """The colour behind the data, for marks that are open."""
    from matplotlib import rcParams

    face = rcParams["axes.facecolor"]
    return rcParams["figure.facecolor"] if face == "none" else face


def theme() -> Theme:
    """The colours that are meant for the ground of the current style, light or dark."""
    from matplotlib.colors import to_rgb

    return DARK if sum(to_rgb(ground())) < 1.5 else LIGHT


def series(number: int) -> str:
    """The colour of a series; where that is ink, the ink of the current style."""
    chosen = SERIES[number % len(SERIES)]
    return ink() if chosen == INK else chosen


def beside(axes: "Axes", place: float, text: str, points: float, **look: Any) -> None:
    """Words to the right of the axes, at a height of the data."""
    axes.annotate(
        text,
        (1, place),
        xycoords=("axes fraction", "data"),
        xytext=(points, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        annotation_clip=False,
        **look,
    )
