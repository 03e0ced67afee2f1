"""The residual of the watched sample in the zero-sum plane, with the eigenvalues of the loop that
drives it.

The thin line is continuous time under the loop of the start, exp(-R t) e: exact where the law
repairs the response.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import scipy.linalg

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.views import views
from whorl.explorer.views.simplex import turns


@views.register("spiral", label="Residual plane", order=3, first=True)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """Both residuals up to one moment."""
    start = run.residual("native")[0]
    flow = continuous(run.loops[0], start)
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "x": flow[:, 0], "y": flow[:, 1], "hoverinfo": "skip"}
        | {"line": {"color": theme.soft, "width": 1}, "name": "continuous"}
    ]
    for name, who, colour in (
        ("reciprocal", "native", theme.native),
        ("turning", "learner", theme.turning),
    ):
        if who == "native" or turns(run):
            traces += plane_traces(name, run.residual(who), moment, colour)
    traces.append(cross(theme))
    notes = [f"eigenvalues  {pair(values)}" for values in run.eigenvalues]
    reach = 1.08 * max(
        np.abs(flow).max(),
        *(np.abs(run.residual(who)).max() for who in ("native", "learner")),
        1e-6,
    )
    entries = [
        ("reciprocal", theme.native),
        *[("turning", theme.turning)] * turns(run),
        ("in continuous time", theme.soft),
    ]
    return plane_figure(traces, reach, notes, moment, entries, theme)


def plane_figure(
    traces: list[dict[str, Any]],
    reach: float,
    notes: list[str],
    moment: int,
    entries: list[tuple[str, str]],
    theme: Theme,
    letter: str = "e",
) -> go.Figure:
    """The zero-sum plane with equal axes, and a note that follows the moment."""
    around = [-reach, reach]
    return style.figure(
        traces,
        theme,
        xaxis=style.axis(
            theme, f"({letter}₁ − {letter}₂)/√2", range=around, nticks=5, constrain="domain"
        ),
        yaxis=style.axis(
            theme,
            f"({letter}₁ + {letter}₂ − 2{letter}₃)/√6",
            range=around,
            scaleanchor="x",
            nticks=5,
            constrain="domain",
        ),
        annotations=[
            style.caption(notes[moment], theme),
            style.key(theme, *entries, captioned=True),
        ],
        meta={"notes": notes},
        margin=style.CAPTIONED,
    )


def plane_traces(name: str, path: np.ndarray, moment: int, colour: str) -> list[dict[str, Any]]:
    """A path in the plane: up to the moment, and its head."""
    x, y = path.T
    all_of_it = {"x": style.packed(x), "y": style.packed(y)}
    line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
    return [
        line
        | {
            "x": x,
            "y": y,
            "line": {"color": colour, "width": 1.5, "dash": "dot"},
            "opacity": 0.35,
            "name": name,
            "showlegend": False,
        },
        line
        | {
            "x": x[: moment + 1],
            "y": y[: moment + 1],
            "line": {"color": colour, "width": 3},
            "name": name,
            "meta": {"upto": all_of_it},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "x": x[moment : moment + 1],
            "y": y[moment : moment + 1],
            "showlegend": False,
            "name": name,
        }
        | {
            "marker": {"size": 10, "color": colour},
            "hovertemplate": "%{x:.3g}, %{y:.3g}",
            "meta": {"at": all_of_it},
        },
    ]


def cross(theme: Theme) -> dict[str, Any]:
    """The origin: no residual."""
    marker = {"symbol": "cross-thin", "size": 12, "line": {"width": 2, "color": theme.ink}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [0],
        "y": [0],
        "marker": marker,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def continuous(loop: np.ndarray, start: np.ndarray, steps: int = 160) -> np.ndarray:
    """The linear flow of one loop until little is left of the residual."""
    slowest = max(float(np.real(np.linalg.eigvals(loop)).min()), 1e-2)
    one = scipy.linalg.expm(-loop * (4.0 / slowest) / steps)
    path = [start]
    for _ in range(steps):
        path.append(one @ path[-1])
    return np.array(path)


def pair(values: np.ndarray) -> str:
    """Two eigenvalues: a conjugate pair as one term, two real ones side by side."""
    first, second = sorted(values, key=lambda value: (value.real, value.imag))
    if abs(second.imag) > 1e-9 * max(abs(second), 1e-300):
        return f"{style.number(float(second.real))} ± {style.number(float(second.imag))} i"
    return f"{style.number(float(first.real))},  {style.number(float(second.real))}"
