"""How strong and how weak the modes of a response are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whorl import _check, simplex
from whorl.palette import GREY, LINES, MARKERS
from whorl.plot._canvas import Drawn, canvas, ground, ink, series
from whorl.response import Response

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WEAKEST = 1e-18  # weaker modes are round-off: they are drawn as 0


def spectrum(
    responses: Response | Sequence[Response] | Mapping[str, Any],
    *,
    tol: float = 1e-10,
    ax: "Axes | None" = None,
) -> Drawn:
    """Draw the eigenvalues of K on the fields that can be reached, relative to the largest, by
    depth.

    Args:
        responses: One response or several, or the table `responses` of a structural study.
        tol: Modes above this share of the largest count towards the rank.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Examples:
        >>> figure = wh.plot.spectrum(wh.response(net, x))
    """
    from matplotlib.ticker import MaxNLocator

    tol = float(_check.scalar("tol", tol, above=0.0))
    by_depth = _of_table(responses) if isinstance(responses, Mapping) else _of_objects(responses)
    axes, drawn = canvas(ax, (6.0, 4.0))
    axes.set_yscale("log")
    by_depth = {d: -np.sort(-np.abs(v) / v[:, :1], axis=1) for d, v in sorted(by_depth.items())}
    floor = _floor(axes, np.concatenate([one.ravel() for one in by_depth.values()]), tol)
    for number, (depth, shown) in enumerate(by_depth.items()):
        _modes(axes, number, depth, np.where(shown < WEAKEST, floor, shown), tol)
    axes.axhline(tol, color=ink(), linestyle="--", linewidth=0.9)
    axes.annotate(
        f"tolerance {tol:g}",
        (1, tol),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="right",
        fontsize="small",
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("mode, strongest first")
    axes.set_ylabel("eigenvalue over the largest")
    axes.set_title("modes of K (open: below the tolerance)")
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def _floor(axes: "Axes", shown: np.ndarray, tol: float) -> float:
    """Where modes that are zero stand: below all others, at a tick that says 0."""
    lowest = min(tol, shown[shown >= WEAKEST].min())
    floor = float(10.0 ** (np.floor(np.log10(lowest)) - 2))
    if (shown < WEAKEST).any():
        decades = np.arange(0, np.log10(lowest) - 0.5, -max(1, round(-np.log10(lowest) / 6)))
        axes.set_yticks([*10.0**decades, floor], [*(f"$10^{{{one:.0f}}}$" for one in decades), "0"])
        axes.minorticks_off()
        axes.axhspan(floor / 4, floor * 4, color=GREY, alpha=0.15, linewidth=0, gid="zero")
    return floor


def _modes(axes: "Axes", number: int, depth: int, shown: np.ndarray, tol: float) -> None:
    """All modes of one depth, filled where they count, and a line through their medians."""
    colour, marker = series(number), MARKERS[number % 8]
    places = np.arange(1, shown.shape[1] + 1)
    look: dict[str, Any] = {
        "color": colour,
        "marker": marker,
        "linestyle": "",
        "markersize": 3,
        "alpha": 0.6,
    }
    for row in shown:
        kept = row > tol
        axes.plot(places[kept], row[kept], gid=f"kept {depth}", **look)
        if not kept.all():
            axes.plot(
                places[~kept], row[~kept], markerfacecolor=ground(), gid=f"lost {depth}", **look
            )
    axes.plot(
        places,
        np.median(shown, axis=0),
        linestyle=LINES[number % 8],
        color=colour,
        label=f"depth {depth}",
        gid="median",
    )


def _of_objects(responses: Any) -> dict[int, np.ndarray]:
    """Eigenvalues by depth, one row a response, as squared singular values of a factor, which keep
    the weak ones apart.
    """
    listed = (
        [responses] if isinstance(responses, Response) else _check.listed("responses", responses)
    )
    if not listed:
        raise ValueError("responses must hold at least one response, but it is empty")
    found: dict[int, list[np.ndarray]] = {}
    for number, one in enumerate(listed):
        _check.instance(f"response {number}", one, Response)
        size = one.directions
        values = np.linalg.svd(np.asarray(one.factor()), compute_uv=False) ** 2
        found.setdefault(len(one.system.blocks), []).append(
            np.concatenate([values, np.zeros(size)])[:size]
        )
    return {depth: _even(rows) for depth, rows in found.items()}


def _of_table(table: Mapping[str, Any]) -> dict[int, np.ndarray]:
    """The same from the stored matrices of networks with three outputs."""
    wanted = ("family", "depth", "row", "column", "layer_sum")
    if missing := [name for name in wanted if name not in table]:
        raise ValueError(
            f"table must have the columns {', '.join(wanted)}, but {missing[0]} is missing"
        )
    family, depth, row, column, entry = (np.asarray(table[name]) for name in wanted)
    if not entry.size or not np.isfinite(entry).all():
        raise ValueError("table must hold finite entries of responses, but it does not")
    size = int(max(row.max(), column.max())) + 1
    basis = np.kron(np.eye(size // 3), np.asarray(simplex.tangent_basis(3)))
    found: dict[int, list[np.ndarray]] = {}
    for d in np.unique(depth):
        for f in np.unique(family[depth == d]):
            here = (depth == d) & (family == f)
            if here.sum() != size * size or size % 3:
                raise ValueError(
                    f"table must hold whole matrices over three outputs, but family {f} at depth "
                    f"{d} has {here.sum()} entries"
                )
            matrix = np.zeros((size, size))
            matrix[row[here], column[here]] = entry[here]
            reduced = basis.T @ matrix @ basis
            found.setdefault(int(d), []).append(np.linalg.eigvalsh((reduced + reduced.T) / 2)[::-1])
    return {d: _even(rows) for d, rows in found.items()}


def _even(rows: list[np.ndarray]) -> np.ndarray:
    if len({row.size for row in rows}) > 1 or any(row[0] <= 0 for row in rows):
        raise ValueError(
            "responses of one depth must have modes, and equally many, but they have not"
        )
    return np.stack(rows)
