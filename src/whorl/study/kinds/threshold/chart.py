"""The coefficient of every configuration against the ratio that predicts its sign."""

from typing import Any

import numpy as np

from whorl.palette import BOTH
from whorl.study.report.charts import Chart, axis, marks, shorts, signed_log
from whorl.study.report.words import number, plural

TABLE = "configurations"
MOST = 3000  # points that a page can carry
RATIO, COEFFICIENT = 0.1, 0.01  # where the axes turn from linear to logarithmic


def chart(statistics: dict[str, float], table: dict[str, np.ndarray], anchor: str) -> Chart:
    """The coefficient against one sample's ratio; every point is one configuration."""
    wrong = table["predicted"] != table["favourable"]
    kept = np.flatnonzero(wrong | (np.arange(wrong.size) % (1 + wrong.size // MOST) == 0))[
        : 2 * MOST
    ]
    ratio, coefficient = (
        np.nan_to_num(table[name][kept], posinf=0, neginf=0) for name in ("ratio", "coefficient")
    )
    edge = float(signed_log(np.array([1.0]), RATIO)[0])
    line = {"type": "line", "x0": edge, "x1": edge, "yref": "paper", "y0": 0, "y1": 1}
    line |= {"line": {"dash": "dash", "width": 1.5}}
    where = {
        "x": edge,
        "xanchor": "left",
        "xshift": 4,
        "yref": "paper",
        "y": 0,
        "yanchor": "bottom",
    }
    layout = {
        "xaxis": axis("curvature ratio of one sample", ratio, RATIO),
        "yaxis": axis("finite-step coefficient", coefficient, COEFFICIENT),
        "shapes": [line],
        "annotations": [where | {"text": "threshold: ratio 1", "showarrow": False}],
    }
    summary = (
        f"Each point is one configuration: {int(table['favourable'].sum())} of {wrong.size} have a "
        "negative coefficient, so that a turn helps. Right of the dashed line the ratio of one "
        f"sample says so; it is wrong for {int(wrong.sum())}, which are ringed"
        f"{_rates(statistics)}. Both axes are logarithmic away from zero."
    )
    if kept.size < wrong.size:
        summary += f" {plural(kept.size, 'point')} are drawn, the wrong ones first."
    traces = _points(
        {name: column[kept] for name, column in table.items()},
        signed_log(ratio, RATIO),
        signed_log(coefficient, COEFFICIENT),
    )
    title = "Does the ratio of one sample predict the sign?"
    return Chart(
        f"{anchor}-scatter", title, summary, *_shares(table), {"data": traces, "layout": layout}
    )


def _rates(statistics: dict[str, float]) -> str:
    """How well the ratio does, with intervals, as far as it is known."""
    names = {"auc": "area under the ROC curve", "accuracy": "share of right predictions"}
    known = {
        word: [number(statistics[f"{key}{end}"]) for end in ("", ".lower", ".upper")]
        for key, word in names.items()
        if f"{key}.upper" in statistics
    }
    return "".join(
        f"; {word} {value}, from {low} to {high} over families"
        for word, (value, low, high) in known.items()
    )


def _points(table: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Configurations by the true sign, and rings around those that the ratio gets wrong."""
    says = (
        "family %{customdata[0]}, depth %{customdata[1]}, β %{customdata[2]}<br>ratio"
        " %{customdata[3]}<br>coefficient %{customdata[4]}"
    )
    shown = np.stack(
        [table[name] for name in ("family", "depth", "beta", "ratio", "coefficient")], -1
    )
    wrong = table["predicted"] != table["favourable"]
    traces = []
    for sign, name, colour, symbol in (
        (1, "a turn helps", BOTH.helps, "circle"),
        (0, "a turn hurts", BOTH.hurts, "diamond"),
    ):
        here = np.flatnonzero(table["favourable"] == sign)
        told = [[*shorts(shown[k]), "<br>predicted wrongly" if wrong[k] else ""] for k in here]
        more = {"customdata": told, "hovertemplate": f"{says}%{{customdata[5]}}<extra></extra>"}
        look = {"look": {"opacity": 0.7}, "name": name}
        traces.append(marks(shorts(x[here]), y[here], colour, symbol, 6, **look, **more))
    ring = {"look": {"line": {"width": 2}}, "name": "predicted wrongly", "hoverinfo": "skip"}
    return [*traces, marks(shorts(x[wrong]), y[wrong], BOTH.wrong, "circle-open", 11, **ring)]


def _shares(table: dict[str, np.ndarray]) -> tuple[tuple[str, ...], list[list[str]]]:
    """By depth and imbalance: how many are favourable, how many predicted rightly."""
    lines = []
    right = table["predicted"] == table["favourable"]
    for depth in np.unique(table["depth"]):
        for beta in np.unique(table["beta"]):
            here = (table["depth"] == depth) & (table["beta"] == beta)
            counts = here.sum(), table["favourable"][here].sum(), right[here].sum()
            lines.append([str(depth), number(float(beta)), *(str(int(one)) for one in counts)])
    return ("depth", "β", "configurations", "a turn helps", "predicted rightly"), lines
