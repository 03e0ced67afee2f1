"""One look for all figures.

APS widths, fonts that matplotlib itself carries, and shapes that tell what colours tell.

Colours are those of `whorl.palette`; markers, line styles and hatches repeat what they say, so that
a grey print loses nothing. Fonts and settings do not depend on the machine or on the reader's own
matplotlib settings.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from whorl.palette import INK, LIGHT
from whorl.plot._canvas import fixed

Tables = Mapping[str, Mapping[str, np.ndarray]]
P = ParamSpec("P")

CENTIMETRE = 1 / 2.54
SINGLE, DOUBLE = 8.6 * CENTIMETRE, 17.8 * CENTIMETRE  # the two widths of APS, in inches
STYLE: dict[Any, Any] = {  # matplotlib's own names
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 4.0,
    "axes.labelpad": 2.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.6,
    "ytick.major.size": 2.6,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.borderaxespad": 0.2,
    "legend.labelspacing": 0.25,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "pdf.compression": 6,
    "svg.hashsalt": "whorl",
    "path.simplify": False,
    "axes.unicode_minus": True,
}


def settings() -> AbstractContextManager[None]:
    """Draw with the settings of these figures, and restore the user's settings afterwards."""
    return fixed(STYLE)


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw under `settings`."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with settings():
            return draw(*args, **kwargs)

    return inside


def figure(height: float, width: float = DOUBLE) -> Figure:
    """An empty figure of an APS width; `height` in centimetres."""
    made = Figure(figsize=(width, height * CENTIMETRE), layout="constrained")
    engine = made.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.03, h_pad=0.03, wspace=0.06, hspace=0.06)  # pyright: ignore[reportCallIssue]
    return made


def panels(
    shape: tuple[int, int], height: float, single: bool, widths: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure across both columns of a journal with its panels in rows, or in a `single` column
    with the panels below each other.
    """
    rows, columns = shape
    if single:
        made = figure(0.95 * height * columns, SINGLE)
        return made, list(made.subplots(rows * columns, 1))
    made = figure(height)
    return made, list(made.subplots(rows, columns, width_ratios=widths).ravel())


def letter(axes: Axes, name: str, title: str) -> None:
    """Name a panel and say what it shows."""
    axes.set_title(rf"$\bf({name})$ {title}")


def stamp(made: Figure, text: str) -> None:
    """Put a warning in a strip of its own under the panels."""
    _foot(
        made,
        text,
        0.995,
        {"ha": "right", "fontweight": "bold", "color": LIGHT.warn, "gid": "stamp"},
    )


def note(made: Figure, text: str) -> None:
    """Say something about the whole figure in a strip of its own under the panels."""
    _foot(made, text, 0.005, {"ha": "left", "style": "italic", "gid": "note"})


def _foot(made: Figure, text: str, across: float, look: dict[str, Any]) -> None:
    engine = made.get_layout_engine()
    assert engine is not None
    strip = 0.15 / made.get_figheight()
    engine.set(rect=(0.0, strip, 1.0, 1.0 - strip))  # pyright: ignore[reportCallIssue]
    with settings():
        made.text(across, 0.2 * strip, text, va="bottom", fontsize=7.5, **look)


def taken(tables: Tables, name: str, columns: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of a table, refused where something is missing, uneven, empty or no number."""
    if name not in tables:
        raise ValueError(
            f"tables must hold {name}, but they are {', '.join(sorted(tables)) or 'none'}"
        )
    table = tables[name]
    if missing := [column for column in columns if column not in table]:
        raise ValueError(
            f"table {name} must have the column {missing[0]}, but it has {', '.join(table)}"
        )
    found = {column: np.asarray(table[column]) for column in columns}
    if (
        len({column.shape for column in found.values()}) != 1
        or next(iter(found.values())).size == 0
    ):
        raise ValueError(
            f"table {name} must have rows in all columns alike, but their shapes are "
            f"{[c.shape for c in found.values()]}"
        )
    for column, values in found.items():
        if values.dtype.kind in "fiu" and not np.isfinite(values).all():
            raise ValueError(
                f"column {column} of table {name} must be finite, but row "
                f"{int(np.argmin(np.isfinite(values)))} is not"
            )
    return found


def statistics(tables: Tables, *needed: str) -> dict[str, float]:
    """The table `statistics` as numbers by name."""
    table = taken(tables, "statistics", ("name", "value"))
    found = dict(zip(table["name"].tolist(), map(float, table["value"]), strict=True))
    if missing := [name for name in needed if name not in found]:
        raise ValueError(
            f"table statistics must have the row {missing[0]}, but it has {', '.join(found)}"
        )
    return found


def spread(count: int, reach: float = 0.28) -> np.ndarray:
    """Places beside each other around zero, in a fixed order that looks like none."""
    places = np.linspace(-reach, reach, count) if count > 1 else np.zeros(count)
    stride = next(
        step
        for step in range(max(1, int(0.382 * count)), count + 2)
        if np.gcd(step, max(count, 1)) == 1
    )
    return places[(np.arange(count) * stride) % max(count, 1)]


def interval(value: float, lower: float, upper: float, digits: int = 3) -> str:
    """A value with its interval below, as text."""
    return f"{value:.{digits}f}\n[{lower:.{digits}f}, {upper:.{digits}f}]"
