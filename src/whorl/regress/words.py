"""A fit as text."""

from typing import Any

import numpy as np

from whorl._show import plural

COLLINEAR = 1e-6  # of the largest singular value


def determined(inputs: np.ndarray) -> np.ndarray:
    """Which columns of the matrix the rows can tell: unit vectors within the span of the inputs."""
    _, values, spanned = np.linalg.svd(inputs, full_matrices=False)
    spanned = spanned[values > COLLINEAR * values[0]]
    return np.asarray(np.abs(spanned.T @ spanned - np.eye(inputs.shape[1])).max(axis=0) < 1e-6)


def notes(
    inputs: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    matrix: np.ndarray,
    names: list[str],
) -> list[str]:
    """What a reader of a fit should know before the numbers are used."""
    told, (n, width) = [], inputs.shape
    absent = np.asarray(~inputs.any(axis=0))
    if absent.any():
        which = ", ".join(name for name, gone in zip(names, absent, strict=True) if gone)
        told.append(f"never above 0 in the input: {which[:200]}; nothing is known of these columns")
    if n < width:
        told.append(
            f"there are fewer rows ({n}) than parts of the input ({width}): many matrices fit "
            "equally well, and this is one of them"
        )
    elif n < 5 * width:
        told.append(f"there are few rows ({n}) for {width} parts of the input: look at intervals")
    if n >= width and not determined(inputs[:, ~absent]).all():
        told.append(
            "parts of the input are collinear: their columns cannot be told apart, and only "
            "their mixture means something"
        )
    zeros = int((matrix == 0).sum())
    if zeros:
        told.append(
            f"the optimum lies on the boundary: {zeros} of {matrix.size} entries "
            f"{'is' if zeros == 1 else 'are'} exactly 0, and intervals there are one-sided"
        )
    if len(targets) > 1 and not np.ptp(targets, axis=0).any():
        told.append("all targets are alike: nothing can depend on the input")
    return told


def labels(model: Any) -> tuple[list[str], list[str]]:
    """The names of the parts before and after."""
    named = getattr(model, "feature_names_in_", None)
    if named is None:
        named = [f"x{j}" for j in range(model.n_features_in_)]
    return [str(one) for one in named], [str(one) for one in model.target_names_]


def sentence(model: Any) -> str:
    """The largest flow that is not a part staying itself, in a sentence one could print."""
    matrix, (came, to) = model.matrix, labels(model)
    moved = np.where(np.array(to)[:, None] == np.array(came)[None, :], -1.0, matrix)
    i, j = np.unravel_index(moved.argmax(), moved.shape)
    bands = getattr(model, "intervals_", None)
    band = (
        ""
        if bands is None
        else f" ({bands.level:.0%} interval {bands.low[i, j]:.1%} to {bands.high[i, j]:.1%})"
    )
    return f"{matrix[i, j]:.1%} of {came[j]} went to {to[i]}{band}"


def to_dict(model: Any) -> dict[str, Any]:
    """A fit as plain values, for machines."""
    came, to = labels(model)
    bands = getattr(model, "intervals_", None)
    return {
        "from": came,
        "to": to,
        "transitions": model.matrix.tolist(),
        "low": None if bands is None else bands.low.tolist(),
        "high": None if bands is None else bands.high.tolist(),
        "level": None if bands is None else bands.level,
        "loss": model.loss_,
        "null_loss": model.null_loss_,
        "gap": model.gap_ if np.isfinite(model.gap_) else None,
        "r_squared": model.r2_ if np.isfinite(model.r2_) else None,
        "notes": model.notes_,
    }


def summary(model: Any) -> str:
    """The matrix with its intervals, how well it fits, and what to mind."""
    matrix, (came, to) = model.matrix, labels(model)
    cells = [[f"{value:.4f}" for value in row] for row in matrix]
    bands = getattr(model, "intervals_", None)
    if bands is not None:
        cells = [
            [f"{value:.3f} [{low:.3f}, {high:.3f}]" for value, low, high in zip(*rows, strict=True)]
            for rows in zip(matrix, bands.low, bands.high, strict=True)
        ]
    lines = [*_table("to \\ from", to, came, cells), ""]
    explained = 1 - model.loss_ / model.null_loss_
    known = f"{model.r2_:z.4f} (mean over the parts that vary)"
    lines.append(
        f"R squared {known if np.isfinite(model.r2_) else 'is not defined: no part varies'}"
    )
    if model.loss == "kl":
        deviance, null = (2 * model.weight_ * value for value in (model.loss_, model.null_loss_))
        lines.append(f"deviance {deviance:.6g} (null model {null:.6g}): {explained:.1%} explained")
    else:
        lines.append(
            f"mean loss {model.loss_:.6g} (null model {model.null_loss_:.6g}): {explained:.1%}"
            " explained"
        )
    if np.isfinite(model.gap_):
        lines.append(
            f"at most {model.gap_:.1e} above the optimum, after {plural(model.n_iter_, 'step')}"
        )
    if bands is not None:
        lines.append(f"intervals: {bands.level:.0%}, {bands}")
    return "\n".join(lines + [f"note: {note}" for note in model.notes_])


def _table(corner: str, rows: list[str], columns: list[str], cells: list[list[str]]) -> list[str]:
    wide = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(columns)]
    first = max(len(corner), *map(len, rows))
    head = "  ".join(
        [corner.ljust(first), *(n.rjust(w) for n, w in zip(columns, wide, strict=True))]
    )
    body = [
        "  ".join([name.ljust(first), *(c.rjust(w) for c, w in zip(row, wide, strict=True))])
        for name, row in zip(rows, cells, strict=True)
    ]
    return [head, *body]
