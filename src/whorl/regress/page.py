"""A fit as one HTML page that needs no network and no scripts."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from whorl import _html
from whorl.ground import store
from whorl.palette import DARK, LIGHT, Theme
from whorl.plot._canvas import fixed
from whorl.regress import draw
from whorl.regress.estimator import FlowRegressor
from whorl.regress.resample import Permuted
from whorl.regress.words import labels, sentence, summary

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action"
    " 'none'"
)


def write(
    model: FlowRegressor,
    path: str | Path,
    *,
    X: Any = None,
    test: Permuted | None = None,
    source: str = "",
) -> Path:
    """Write the page of a fitted model; it is there in the end, whole, or not at all.

    Args:
        model: fitted; its intervals are shown where `bootstrap` made them.
        path: of the file, which must end in .html.
        X: the inputs, for the widths of the flows.
        test: what `permutation` found.
        source: the name of the data, for the head of the page.

    Examples:
        >>> from whorl.regress import FlowRegressor, write
        >>> model = FlowRegressor().fit(np.asarray(x), np.asarray(y))
        >>> write(model, folder / "fit.html").name
        'fit.html'
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise ValueError(f"page must end in .html, but it is {str(path)!r}")
    store.write(target, render(model, X=X, test=test, source=source).encode())
    return target


def render(
    model: FlowRegressor, *, X: Any = None, test: Permuted | None = None, source: str = ""
) -> str:
    """The page as HTML."""
    came, to = labels(model)
    bands = getattr(model, "intervals_", None)
    matrix = model.matrix
    cells = [
        [
            (
                f"{matrix[i, j]:.3f}",
                "" if bands is None else f"{bands.low[i, j]:.3f} to {bands.high[i, j]:.3f}",
            )
            for j in range(len(came))
        ]
        for i in range(len(to))
    ]
    shares = "equal parts" if X is None else "the mean composition before"
    told = "" if bands is None else f", with {bands.level:.0%} intervals"
    pictures: list[tuple[str, Callable[[Any], Any], str | None]] = [
        (
            f"Where it went: bands are shares of {shares}",
            lambda ax: draw.flows(model, X, ax=ax),
            None,
        ),
        (f"Every entry of the matrix{told}", lambda ax: draw.intervals(model, ax=ax), None),
    ]
    if len(to) == 3:
        cloud = "" if bands is None else "; small dots are bootstrap fits"
        pictures.append(
            (
                f"Every column as a point among the three parts after{cloud}",
                lambda ax: draw.ternary(model, ax=ax),
                "ternary",
            )
        )
    height = max(3.9, 0.55 * max(len(came), len(to)))
    template = _html.templates("whorl.regress").get_template("regress.html.j2")
    return template.render(
        policy=POLICY,
        source=source,
        title=sentence(model),
        came=came,
        rows=list(zip(to, cells, strict=True)),
        level=None if bands is None else f"{bands.level:.0%}",
        details=_details(model),
        notes=model.notes_,
        test=test,
        pictures=[
            (name, [_png(act, kind, theme, height) for theme in (LIGHT, DARK)])
            for name, act, kind in pictures
        ],
    )


def _details(model: FlowRegressor) -> str:
    """How well it fits, without the matrix and the notes that stand above it."""
    lines = summary(model).partition("\n\n")[2].splitlines()
    return "\n".join(line for line in lines if not line.startswith("note: "))


def _png(act: Callable[[Any], Any], projection: str | None, theme: Theme, height: float) -> str:
    import mpltern  # noqa: F401  (registers the ternary projection)
    from matplotlib.figure import Figure

    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    look: Any = dict.fromkeys(inked, theme.ink) | dict.fromkeys(
        ("figure.facecolor", "axes.facecolor", "savefig.facecolor"), theme.paper
    )
    content = io.BytesIO()
    with fixed(look):
        figure = Figure(figsize=(5.2, height), layout="constrained")
        act(figure.add_subplot(projection=projection))
        figure.savefig(content, format="png", dpi=160, metadata={"Software": None})
    return base64.b64encode(content.getvalue()).decode()
