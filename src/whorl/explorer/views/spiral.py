"""The residual of the watched sample in the zero-sum plane, with the eigenvalues of its loop.

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
    flow = continuous(run.loops[0], run.residual("native")[0])
    paths = {who: run.residual(who) for who in ("native", "learner")}
    traces = [style.line(theme.soft, 1, x=flow[:, 0], y=flow[:, 1], name="continuous")]
    traces += track("reciprocal", paths["native"], moment, theme.native)
    entries = [("reciprocal", theme.native)]
    if turns(run):
        traces += track("turning", paths["learner"], moment, theme.turning)
        entries.append(("turning", theme.turning))
    entries.append(("in continuous time", theme.soft))
    traces.append(cross(theme))
    reach = 1.08 * max(np.abs(flow).max(), *(np.abs(one).max() for one in paths.values()), 1e-6)
    notes = [f"eigenvalues  {pair(values)}" for values in run.eigenvalues]
    return plane(traces, reach, notes, moment, entries, theme)


def plane(
    traces: list[dict[str, Any]],
    reach: float,
    notes: list[str],
    moment: int,
    entries: list[tuple[str, str]],
    theme: Theme,
    letter: str = "e",
) -> go.Figure:
    """The zero-sum plane with equal axes, and a note that follows the moment."""
    common = {"range": [-reach, reach], "nticks": 5, "constrain": "domain"}
    across, up = f"({letter}₁ − {letter}₂)/√2", f"({letter}₁ + {letter}₂ − 2{letter}₃)/√6"
    return noted(
        traces,
        notes,
        moment,
        entries,
        theme,
        xaxis=style.axis(theme, across, **common),
        yaxis=style.axis(theme, up, scaleanchor="x", **common),
    )


def noted(
    traces: list[dict[str, Any]],
    notes: list[str],
    moment: int,
    entries: list[tuple[str, str]],
    theme: Theme,
    **layout: Any,
) -> go.Figure:
    """A figure with a key, and above it a note that follows the moment."""
    above = [style.caption(notes[moment], theme), style.key(theme, *entries, captioned=True)]
    return style.figure(
        traces,
        theme,
        annotations=above,
        meta={"notes": notes},
        margin=style.CAPTIONED,
        **layout,
    )


def track(name: str, path: np.ndarray, moment: int, colour: str) -> list[dict[str, Any]]:
    """A path in the plane."""
    return style.track(name, dict(zip("xy", path.T, strict=True)), moment, colour)


def cross(theme: Theme) -> dict[str, Any]:
    """The origin: no residual."""
    marker = {"symbol": "cross-thin", "line": {"width": 2, "color": theme.ink}}
    return style.dots(theme.ink, 12, x=[0], y=[0], marker=marker)


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
