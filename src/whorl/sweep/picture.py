"""A first figure of a sweep: the mean gap over the swept parameters."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whorl.ground import store
from whorl.palette import FAINT, LINES, MARKERS
from whorl.plot._canvas import Drawn, canvas, fixed, series
from whorl.sweep.table import conditions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERS = ("gap", "even", "handedness", "step", "drift", "final", "native", "gap_error", "cases", "failed")  # fmt: skip
MOST = 8  # lines that can be told apart


def picture(folder: Path | str, *, ax: "Axes | None" = None) -> Drawn:
    r"""Draw the mean gap, with two standard errors, over the swept number with the most values.

    One line per value of the next swept parameter; what else was swept is averaged over. Above
    zero, native learners end lower.

    Args:
        folder: The folder of a sweep.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
        >>> result = sweep.sweep(design, folder / "few")
        >>> figure = sweep.picture(folder / "few")
    """
    table = conditions(folder)
    swept = [name for name in table.columns if name not in NUMBERS]
    values = {name: table[name].n_unique() for name in swept}
    numeric = [name for name in swept if table[name].dtype.is_numeric()] or swept
    across = max(numeric, key=lambda name: values[name])
    others = sorted((name for name in swept if name != across), key=lambda name: -values[name])
    lines = next((name for name in others if 1 < values[name] <= MOST), None)
    axes, drawn = canvas(ax, (6.4, 4.0))
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    groups = (
        [(None, table)] if lines is None else table.sort(lines).group_by(lines, maintain_order=True)
    )
    for number, (value, rows) in enumerate(groups):
        label = None if value is None else f"{lines} = {value[0]}"
        _line(axes, rows, across, number, label)
    left_out = [name for name in others if name != lines and values[name] > 1]
    averaged = f"; mean over {', '.join(left_out)}" if left_out else ""
    axes.set_xlabel(across.replace("_", " "))
    axes.set_ylabel("mean gap (above zero, native ends lower)")
    axes.set_title(f"bars: two standard errors{averaged}", fontsize="small")
    if lines is not None:
        axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def draw(folder: Path) -> Path:
    """Write the picture of a sweep beside its folder as `folder.png`, with matplotlib's defaults.

    Returns:
        Where the picture is.
    """
    content, target = io.BytesIO(), folder.with_name(f"{folder.name}.png")
    with fixed({}):
        picture(folder).savefig(content, format="png", dpi=160)
    store.write(target, content.getvalue())
    return target


def _line(axes: Any, rows: Any, across: str, number: int, label: str | None) -> None:
    """Means over what is not drawn, with the error of a mean of means."""
    import polars

    error = (polars.col("gap_error").fill_null(0.0) ** 2).sum().sqrt() / polars.len()
    shown = rows.group_by(across).agg(polars.col("gap").mean(), error.alias("error")).sort(across)
    at = shown[across].to_list()
    axes.errorbar(
        at if shown[across].dtype.is_numeric() else list(map(str, at)),
        shown["gap"].to_numpy(),
        2 * shown["error"].to_numpy(),
        color=series(number),
        marker=MARKERS[number % 8],
        linestyle=LINES[number % 8],
        markersize=4,
        linewidth=1.2,
        capsize=2,
        label=label,
    )
