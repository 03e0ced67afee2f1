"""Figures of one measured loop, from a table or from series.

The data, the path of an error, the two parts of the loop, its eigenvalues, and what the fit leaves
over. Each function draws into axes that it is given, in two colours and one ink, so that the same
picture serves a light page, a dark page and print.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import linalg

from whorl import simplex
from whorl.measured.bootstrap import Intervals, ellipse
from whorl.measured.estimate import Estimated
from whorl.measured.finding import Loop
from whorl.measured.moments import SHOWN
from whorl.measured.series import Course
from whorl.measured.words import turn_unit
from whorl.palette import BOTH, MARKERS
from whorl.verdict import Verdict

INK = "#010203"  # replaced by the page's own text colour
STRAIGHT, TURNING = Verdict.RECIPROCAL.colour, Verdict.TURNS.colour
# of outputs, on light and on dark ground alike
ALIKE = (BOTH.native, BOTH.turning, BOTH.matched, BOTH.other, BOTH.wrong, BOTH.quiet)
PATHS = 40  # replicates drawn behind the spiral


def spiral(axes: Any, fit: Estimated, spans: Intervals, what: str = "residual") -> None:
    """Where a residual of size one goes under the fitted loop, and where it would go without the
    skew part.
    """
    plane = turning_plane(fit.loop)
    slowest = max(
        float(np.min(np.linalg.eigvalsh(fit.symmetric))),
        0.15 * float(np.max(np.abs(fit.eigenvalues))),
    )
    times = np.linspace(0.0, 5.0 / slowest, 300)
    start = plane @ np.array([1.0, 0.0])
    for drawn in spans.replicates[:PATHS]:
        axes.plot(*_path(drawn, plane, start, times), color=TURNING, alpha=0.15, linewidth=0.7)
    straight = _path(fit.symmetric, plane, start, times)
    axes.plot(
        *straight, color=STRAIGHT, linestyle="--", linewidth=1.8, label="without its skew part"
    )
    axes.plot(
        *_path(fit.loop, plane, start, times),
        color=TURNING,
        linewidth=2.2,
        label="fitted loop",
    )
    axes.plot(0, 0, "+", color=INK, markersize=10)
    axes.plot(1, 0, "o", color=INK, markersize=5)
    axes.margins(0.08)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(f"{what}, first direction")
    axes.set_ylabel(f"{what}, second direction")
    _legend(axes, 2)


def _legend(axes: Any, columns: int) -> None:
    """Above the data, never on it."""
    place: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
    axes.legend(ncols=columns, frameon=False, labelcolor=INK, **place)


def raw(axes: Any, loop: Loop, samples: int, outputs: int) -> None:
    """Measured velocity over what was applied, both at the same output."""
    parts, rows = loop.record.moments.parts, loop.record.shown
    out = lift(samples, outputs).T
    applied, seen = (rows[:, parts[name]] @ out for name in (loop.drive, "velocity"))
    axes.axhline(0, color=INK, linewidth=0.6, alpha=0.5)
    axes.axvline(0, color=INK, linewidth=0.6, alpha=0.5)
    for number in range(min(samples * outputs, 8)):
        look = {"color": ALIKE[number % 6], "marker": MARKERS[number % 8], "alpha": 0.6}
        name = f"output {number % outputs + 1}" + f", sample {number // outputs + 1}" * (
            samples > 1
        )
        axes.plot(
            applied[:, number], seen[:, number], linestyle="", markersize=4, label=name, **look
        )
    axes.set_xlabel(f"{loop.drive} applied (zero-sum part)")
    axes.set_ylabel("velocity measured")
    _legend(axes, 3)


def states(axes: Any, course: Course, unit: str) -> None:
    """Every part of the state over time, with the operating point as a line."""
    given, rests = course.raw, course.span.lifted(course.rest)
    thin = max(1, len(given.now) // SHOWN)
    for number, (own, rest) in enumerate(zip(given.after.T[:8], rests, strict=False)):
        look = {"color": ALIKE[number % 6], "alpha": 0.6}
        marks = {"marker": MARKERS[number % 8], "linestyle": "", "markersize": 3}
        axes.plot(given.time[::thin], own[::thin], label=f"state {number + 1}", **look, **marks)
        if own.min() <= rest <= own.max():
            axes.axhline(rest, linewidth=1.2, linestyle="--", **look)
    axes.set_xlabel(f"time, {unit}", parse_math=False)
    axes.set_ylabel("state measured")
    _legend(axes, 4)


def unforeseen(axes: Any, course: Course) -> None:
    """The residuals of the fit, in units of their scatter, in the order of the samples."""
    thin = max(1, len(course.left) // SHOWN)
    axes.axhline(0, color=INK, linewidth=0.6, alpha=0.5)
    order = np.arange(1, len(course.left) + 1)[::thin]
    look: Any = {"color": STRAIGHT, "alpha": 0.6, "markersize": 6, "markeredgewidth": 0}
    axes.plot(order, course.left[::thin], ".", **look)
    axes.set_xlabel("step" if thin == 1 else f"step (every {thin}th shown)")
    axes.set_ylabel("residual over scatter")


def parts(pair: Any, fit: Estimated, lift: np.ndarray, what: str = "output") -> None:
    """The loop as the sum of a symmetric and a skew matrix, on one scale.

    `lift` takes its coordinates to outputs or states.
    """
    matrices = {
        "symmetric part": lift @ fit.symmetric @ lift.T,
        "skew part": lift @ fit.skew @ lift.T,
    }
    largest = max(float(np.abs(matrix).max()) for matrix in matrices.values()) or 1.0
    matrices = {
        title: np.where(np.abs(matrix) > 1e-9 * largest, matrix, 0.0)
        for title, matrix in matrices.items()
    }
    pair[0].set_ylabel(f"moving {what}")
    for axes, (title, matrix) in zip(pair, matrices.items(), strict=True):
        size = len(matrix)
        shown = np.zeros((size, size, 4))
        for colour, where in ((TURNING, matrix > 0), (STRAIGHT, matrix < 0)):
            shown[where, :3] = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        shown[..., 3] = 0.85 * np.abs(matrix) / largest
        axes.imshow(shown, interpolation="nearest")
        axes.set_title(title, color=INK)
        axes.set_xlabel(f"driven {what}" if what == "output" else f"driving {what}")
        ticks = np.arange(size) if size <= 12 else np.arange(0, size, 5)
        axes.set_xticks(ticks, ticks + 1)
        axes.set_yticks(ticks, ticks + 1)
        if size <= 4:
            for (row, column), value in np.ndenumerate(matrix):
                axes.text(
                    column, row, f"{value:.2g}", ha="center", va="center", color=INK, fontsize=9
                )
    _scale(pair, largest, "velocity per residual" if what == "output" else "decay per unit time")


def _scale(pair: Any, largest: float, label: str) -> None:
    """One bar for both matrices: what lowers, nothing, what raises."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    faint = "#ffffff00"
    colours = LinearSegmentedColormap.from_list("parts", [STRAIGHT, faint, TURNING])
    shown = ScalarMappable(Normalize(-largest, largest), colours)
    bar = pair[0].figure.colorbar(shown, ax=list(pair), shrink=0.7, aspect=12)
    bar.set_label(label)
    bar.outline.set_edgecolor(INK)


def eigenvalues(axes: Any, spans: Intervals, unit: str) -> None:
    """Eigenvalues of the loop with the ellipses that hold 95 of 100 replicates."""
    from matplotlib.patches import Ellipse

    axes.axhline(0, color=INK, linewidth=0.6, alpha=0.5)
    for mode in spans.modes:
        turns = mode.rotation.estimate > 0
        for sign in (1, -1) if turns else (1,):
            # Replicates of a real eigenvalue may come in pairs, one above the line and one below.
            cloud = np.real(mode.cloud) + 1j * sign * np.imag(mode.cloud)
            cloud = cloud if turns else np.concatenate([cloud, np.conj(cloud)])
            centre = (mode.decay.estimate, sign * mode.rotation.estimate)
            axes.plot(
                np.real(cloud),
                np.imag(cloud),
                ".",
                color=TURNING,
                alpha=0.12,
                markersize=3,
                markeredgewidth=0,
            )
            width, height, angle = ellipse(cloud)
            axes.add_patch(
                Ellipse(
                    centre, width, height, angle=angle, fill=False, edgecolor=TURNING, linewidth=1.6
                )
            )
            axes.plot(*centre, "o", color=INK, markersize=4)
    axes.plot(0, 0, "+", color=INK, markersize=10)
    axes.margins(0.12)
    axes.set_xlabel(f"decay rate, per {unit}", parse_math=False)
    axes.set_ylabel(f"rotation rate, {turn_unit(unit)}", parse_math=False)


def leftovers(axes: Any, loop: Loop, samples: int, outputs: int) -> None:
    """Measured velocity less fitted velocity, in the order of the measurements, for every
    output.
    """
    parts, rows = loop.record.moments.parts, loop.record.shown
    basis = loop.fit.basis
    fitted = (rows[:, parts[loop.drive]] @ basis @ loop.fit.loop.T + loop.fit.offset) @ basis.T
    gaps = (rows[:, parts["velocity"]] - fitted) @ lift(samples, outputs).T
    order = np.linspace(1, loop.record.rows, len(rows))
    axes.axhline(0, color=INK, linewidth=0.6, alpha=0.5)
    axes.plot(order, gaps, ".", color=STRAIGHT, alpha=0.6, markersize=6, markeredgewidth=0)
    axes.set_xlabel(
        "measurement"
        if len(rows) == loop.record.rows
        else f"measurement (every {loop.record.rows // len(rows)}th shown)"
    )
    axes.set_ylabel("velocity, measured less fitted")


def turning_plane(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n 2"]:
    """An orthonormal basis of the plane in which the loop rotates fastest.

    Of its two slowest directions where nothing rotates.
    """
    values, vectors = np.linalg.eig(matrix)
    fastest = int(np.argmax(np.abs(np.imag(values))))
    if abs(values[fastest].imag) > 0:
        return np.linalg.qr(
            np.stack([np.real(vectors[:, fastest]), np.imag(vectors[:, fastest])], axis=1)
        )[0]
    return np.linalg.eigh((matrix + matrix.T) / 2)[1][:, :2]


def _path(
    matrix: np.ndarray, plane: np.ndarray, start: np.ndarray, times: np.ndarray
) -> np.ndarray:
    step = linalg.expm(-matrix * (times[1] - times[0]))
    states = [start]
    for _ in times[1:]:
        states.append(step @ states[-1])
    path = plane.T @ np.array(states).T
    # A loop that grows leaves the picture; what is far outside need not be drawn.
    return np.where(np.abs(path).max(axis=0) < 3, path, np.nan)


def lift(samples: int, outputs: int) -> np.ndarray:
    """From zero-sum coordinates to the outputs of all samples."""
    return np.kron(np.eye(samples), simplex.tangent_basis(outputs))
