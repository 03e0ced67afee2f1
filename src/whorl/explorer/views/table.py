"""Pictures of somebody's table, each chosen by the columns that are there."""

from html import escape

import numpy as np
import plotly.graph_objects as go

from whorl import _check
from whorl.explorer import style
from whorl.explorer.compute import PLANE
from whorl.explorer.style import Theme
from whorl.learning.ledger import TERMS

LONGEST = 40  # letters of a column's name
SHOWN = 5000  # points of a scatter; a browser should not have to draw more
TIMES = ("update", "epoch", "time", "t")
KEYS = (
    "family",
    "trial",
    "trajectory",
    "seed",
    "sample",
    "row",
    "column",
    "layer",
    "draw",
    "flip",
    "depth",
    "beta",
    "scale",
)
Columns = dict[str, np.ndarray]


def figures(numbers: Columns, theme: Theme) -> dict[str, go.Figure]:
    """All that these columns can show."""
    drawn: dict[str, go.Figure] = {}
    if all(term in numbers for term in TERMS):
        drawn["ledger"] = ledger(numbers, theme)
    if "ratio" in numbers and "coefficient" in numbers:
        drawn["rule"] = rule(numbers, theme)
    if "real" in numbers and "imag" in numbers:
        drawn["eigenvalues"] = scatter(numbers, "real", "imag", theme)
    if starting(numbers, "residual"):
        drawn["plane"] = plane(numbers, theme)
    times = [name for name in TIMES if name in numbers]
    if times:
        drawn["lines"] = lines(numbers, times[0], theme)
    return drawn or {"scatter": anything(numbers, theme)}


def label(name: str) -> str:
    """A column's name in a picture.

    Plotly reads some HTML in its words, links among it, and a stranger's name is to be none.
    """
    shown = _check.plain(name if len(name) <= LONGEST else name[: LONGEST - 1] + "…")
    return escape(shown, quote=False)


def starting(numbers: Columns, word: str) -> list[str]:
    """The columns whose names begin with `word` and end in a number, in order."""
    return [name for name in numbers if name.startswith(word) and name[-1].isdigit()]


def measured(numbers: Columns) -> bool:
    """Whether this is a measured learner."""
    return bool(starting(numbers, "residual") or starting(numbers, "potential")) and bool(
        starting(numbers, "velocity")
    )


def widened(numbers: Columns) -> Columns:
    """Measurements with one output per row, as one measurement per row; any other table as it is."""
    names = ("measurement", "output", "residual", "velocity")
    if not all(name in numbers for name in names):
        return numbers
    which, output, residual, velocity = (numbers[name] for name in names)
    rows, row = np.unique(which, return_inverse=True)
    outputs, place = np.unique(output, return_inverse=True)
    wide: Columns = {"measurement": rows}
    for name, values in (("residual", residual), ("velocity", velocity)):
        table = np.full((len(rows), len(outputs)), np.nan)
        table[row, place] = values
        wide |= {f"{name}_{number + 1}": column for number, column in enumerate(table.T)}
    return wide


def ledger(numbers: Columns, theme: Theme) -> go.Figure:
    """The mean account of all rows as a waterfall that ends at the gap."""
    terms = np.array([np.nanmean(numbers[term]) for term in TERMS])
    if "updates" in numbers or "update" in numbers:
        ends = numbers.get("update", numbers.get("updates"))
        assert ends is not None
        terms = terms * len(np.unique(ends))  # one row per update: an account is a sum over them
    steps = np.concatenate([[0.0], np.cumsum(terms)])
    heights, bases = np.append(terms, steps[-1]), np.append(steps[:-1], 0.0)
    colours = [*(theme.hurts if term > 0 else theme.helps for term in terms), theme.soft]
    texts = [f"{'+' if value > 0 else ''}{style.number(float(value))}" for value in heights]
    bar = {
        "type": "bar",
        "x": list(range(5)),
        "y": heights,
        "base": bases,
        "marker": {"color": colours},
        "text": texts,
        "width": 0.66,
    }
    axis = style.axis(theme, tickvals=list(range(5)), ticktext=[*TERMS, "gap"], showgrid=False)
    title = "mean over rows" if "update" not in numbers else "mean over trajectories"
    return style.figure(
        [bar | {"textposition": "outside", "cliponaxis": False, "hoverinfo": "skip"}],
        theme,
        xaxis=axis,
        yaxis=style.axis(theme, title),
    )


def rule(numbers: Columns, theme: Theme) -> go.Figure:
    """The coefficient over the ratio: below zero it should lie to the right of one."""
    ratio, value = numbers["ratio"], numbers["coefficient"]
    unit = max(float(np.nanquantile(np.abs(value), 0.2)), 1e-300)
    bent = np.sign(value) * np.log10(1 + np.abs(value) / unit)
    shift = np.sign(ratio) * np.log10(1 + np.abs(ratio))
    keep = _some(len(ratio))
    helps = value < 0
    traces = []
    for name, chosen, colour in (
        ("turn helps", helps, theme.helps),
        ("turn hurts", ~helps, theme.hurts),
    ):
        here = keep[chosen[keep]]
        traces.append(_points(shift[here], bent[here], colour, name))
    marks = [-100, -10, -1, 0, 1, 10, 100, 1000]
    ticks = {
        "tickvals": [float(np.sign(m) * np.log10(1 + abs(m))) for m in marks],
        "ticktext": [str(m) for m in marks],
    }
    cut = {
        "type": "line",
        "x0": np.log10(2),
        "x1": np.log10(2),
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"color": theme.soft, "dash": "dash"},
    }
    levels = [-(10**4) * unit, -100 * unit, 0, 100 * unit, 10**4 * unit]
    up = {
        "tickvals": [float(np.sign(m) * np.log10(1 + abs(m) / unit)) for m in levels],
        "ticktext": [style.number(m) for m in levels],
    }
    key = style.key(theme, ("turn helps", theme.helps), ("turn hurts", theme.hurts))
    across, along = style.axis(theme, "ratio χ", **ticks), style.axis(theme, "coefficient Q", **up)
    return style.figure(traces, theme, xaxis=across, yaxis=along, shapes=[cut], annotations=[key])


def plane(numbers: Columns, theme: Theme) -> go.Figure:
    """Measured residuals in the zero-sum plane, or their first two entries, each with its
    velocity.
    """
    names, speeds = starting(numbers, "residual"), starting(numbers, "velocity")
    residual = np.column_stack([numbers[name] for name in names])
    to = (
        PLANE
        if residual.shape[1] == 3
        else np.eye(residual.shape[1])[:, : min(2, residual.shape[1])]
    )
    points = (
        residual @ to if to.shape[1] == 2 else np.column_stack([residual, np.zeros(len(residual))])
    )
    keep = _some(len(points), 400)
    traces = [_points(points[keep, 0], points[keep, 1], theme.native, "residual")]
    if len(speeds) == len(names) and to.shape[1] == 2:
        velocity = np.column_stack([numbers[name] for name in speeds]) @ to
        size = 0.25 * np.nanmax(np.abs(points)) / max(float(np.nanmax(np.abs(velocity))), 1e-300)
        ends = points - size * velocity  # predictions move by the velocity, residuals against it
        gap = np.full(len(keep), np.nan)
        x = np.column_stack([points[keep, 0], ends[keep, 0], gap]).ravel()
        y = np.column_stack([points[keep, 1], ends[keep, 1], gap]).ravel()
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": y,
                "line": {"color": theme.turning, "width": 1.5},
                "name": "where it goes",
            }
        )
    key = style.key(theme, ("residual", theme.native), ("where it goes", theme.turning))
    across, along = (
        style.axis(theme, "first coordinate"),
        style.axis(theme, "second", scaleanchor="x"),
    )
    return style.figure(traces, theme, xaxis=across, yaxis=along, annotations=[key])


def lines(numbers: Columns, time: str, theme: Theme) -> go.Figure:
    """Up to four columns over time.

    The median over rows at each instant, and the middle half of them.
    """
    instants = np.unique(numbers[time][np.isfinite(numbers[time])])[:2000]
    wanted = [
        name
        for name in numbers
        if name != time and name not in KEYS and not name.endswith(("_residual", "closure"))
    ]
    wanted.sort(
        key=lambda name: ("loss" not in name, name not in ("taken", "native", "final", "gap"))
    )
    traces: list[dict] = []
    for name, colour, dash in zip(
        wanted,
        (theme.native, theme.turning, theme.matched, theme.soft),
        ("solid", "dash", "dot", "dashdot"),
        strict=False,
    ):
        groups = [numbers[name][numbers[time] == instant] for instant in instants]
        low, middle, high = np.array(
            [np.nanquantile(group, [0.25, 0.5, 0.75]) for group in groups]
        ).T
        edge = {
            "type": "scatter",
            "mode": "lines",
            "x": instants,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        traces += [
            edge | {"y": low},
            edge | {"y": high, "fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.15)"},
        ]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": instants,
                "y": middle,
                "name": label(name),
                "line": {"color": colour, "width": 2.5, "dash": dash},
            }
        )
    key = style.key(
        theme,
        *((trace["name"], trace["line"]["color"]) for trace in traces if "name" in trace),
        captioned=True,
    )
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(theme, label(time)),
        yaxis=style.axis(theme, "median, middle half", exponentformat="power", nticks=6),
        annotations=[style.caption(_averaged(numbers, time, len(instants)), theme), key],
        margin=style.CAPTIONED,
    )


def _averaged(numbers: Columns, time: str, instants: int) -> str:
    """What a point of a line stands for: how many rows, and which keys they differ in."""
    keys = [name for name in numbers if name in KEYS and name != time]
    over = [label(name) for name in keys if len(np.unique(numbers[name])) > 1]
    rows = round(len(numbers[time]) / max(instants, 1))
    return f"over {rows} rows each" + (f" ({', '.join(over[:4])})" if over else "")


def scatter(numbers: Columns, across: str, up: str, theme: Theme) -> go.Figure:
    """One column over another."""
    keep = _some(len(numbers[across]))
    points = _points(numbers[across][keep], numbers[up][keep], theme.native, label(up))
    return style.figure(
        [points], theme, xaxis=style.axis(theme, label(across)), yaxis=style.axis(theme, label(up))
    )


def anything(numbers: Columns, theme: Theme) -> go.Figure:
    """The first two columns that say something, or a histogram of the only one."""
    telling = [
        name
        for name, values in numbers.items()
        if name not in KEYS and np.nanmin(values) < np.nanmax(values)
    ] or list(numbers)
    if len(telling) > 1:
        return scatter(numbers, telling[0], telling[1], theme)
    bars = {"type": "histogram", "x": numbers[telling[0]], "marker": {"color": theme.native}}
    return style.figure(
        [bars], theme, xaxis=style.axis(theme, label(telling[0])), yaxis=style.axis(theme, "rows")
    )


def _points(x: np.ndarray, y: np.ndarray, colour: str, name: str) -> dict:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "name": name,
        "marker": {"size": 6, "color": colour, "opacity": 0.6},
    }


def _some(rows: int, most: int = SHOWN) -> np.ndarray:
    """Which rows to draw: all, or evenly spaced ones."""
    return np.arange(rows) if rows <= most else np.linspace(0, rows - 1, most).astype(int)
