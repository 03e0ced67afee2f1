"""Motion on a column of three: the residual's spiral, and any score field."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from whorl import _check, simplex
from whorl._check import Numbers
from whorl.flow import Flow
from whorl.integrability import Field, circulation, exterior_derivative
from whorl.palette import FAINT, GREY, LINES
from whorl.plot._canvas import Drawn, canvas, figure, ink, series, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The corners of a triangle on which a column of three lies: entries 1, 2, 3 go counter-clockwise
# from the lower left.
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
LOOP = 0.2  # radius of the loop around the middle, along which a portrait measures the circulation


def spiral(
    flows: Flow | Mapping[str, Flow],
    targets: Numbers,
    *,
    sample: int = 0,
    axes: "Sequence[Axes] | None" = None,
) -> Drawn:
    """Draw how the residual of one sample dies out.

    In the zero-sum plane, and as the prediction's path on the simplex.

    Args:
        flows: One flow, or several by name.
        targets: Targets of the samples that drive them, one row per sample.
        sample: Which of these samples to draw.
        axes: Two to draw on, the second made with `projection="ternary"`; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Examples:
        >>> path = wh.flow(net, x, y, wh.repair(), [0.0, 1.0], selected=0)
        >>> figure = wh.plot.spiral(path, y[:1])
    """
    import mpltern  # noqa: F401  (registers the ternary projection)

    named = dict(flows) if isinstance(flows, Mapping) else {"": flows}
    if not named:
        raise ValueError("flows must hold at least one flow, but it is empty")
    paths = {}
    for name, flow in named.items():
        _check.instance(f"flow {name}".strip(), flow, Flow)
        if flow.residual.shape[2] != 3:
            raise ValueError(
                f"flows must have 3 outputs to lie on a triangle, but {name or 'the flow'} has "
                f"{flow.residual.shape[2]}"
            )
        paths[name] = np.asarray(flow.residual)[
            :, _check.index("sample", sample, flow.residual.shape[1])
        ]
    rows = np.asarray(
        _check.compositions(
            "targets",
            np.atleast_2d(np.asarray(targets)),
            3,
            next(iter(named.values())).residual.dtype,
        )
    )
    target = rows[_check.index("sample", sample, rows.shape[0])]
    if axes is None:
        made = figure((7.4, 3.6))
        plane, triangle = made.add_subplot(1, 2, 1), made.add_subplot(1, 2, 2, projection="ternary")
        # the layout does not count the title of ternary axes
        made.get_layout_engine().set(rect=(0.0, 0.0, 1.0, 0.93))
    else:
        if len(given := list(axes)) != 2:
            raise ValueError(f"axes must be two, but there are {len(given)}")
        made, (plane, triangle) = axes, given
        canvas(plane, (0, 0))
        canvas(triangle, (0, 0), projection="ternary")
    _plane(plane, paths)
    _ternary(triangle, paths, target)
    if any(named):
        plane.legend(frameon=False, fontsize="small")
    return made


def _plane(axes: "Axes", paths: dict[str, np.ndarray]) -> None:
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]).T / np.sqrt([2.0, 6.0])
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    for number, (name, path) in enumerate(paths.items()):
        across, up = (path @ basis).T
        axes.plot(
            across,
            up,
            color=series(number),
            linestyle=LINES[number % 8],
            label=name or None,
            gid="path",
        )
        axes.plot(across[0], up[0], "o", color=ink(), markersize=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_title("residual in the zero-sum plane")
    axes.set_xlabel(r"$(e_1 - e_2)/\sqrt{2}$")
    axes.set_ylabel(r"$(e_1 + e_2 - 2e_3)/\sqrt{6}$")
    axes.spines[["top", "right"]].set_visible(False)


def _ternary(axes: "Axes", paths: dict[str, np.ndarray], target: np.ndarray) -> None:
    for number, path in enumerate(paths.values()):
        top, left, right = (target - path).T
        axes.plot(top, left, right, color=series(number), linestyle=LINES[number % 8], gid="path")
        axes.plot(top[:1], left[:1], right[:1], "o", color=ink(), markersize=4)
    axes.plot(*target[:, None], "*", color=ink(), markersize=10, gid="target")
    axes.grid(color=FAINT, linewidth=0.5, alpha=0.5)
    axes.set_title("prediction on the simplex", pad=14)
    for name, label in zip("tlr", ("output 1", "output 2", "output 3"), strict=True):
        getattr(axes, f"set_{name}label")(label)


def phase_portrait(
    field: Field, *, points: int = 61, density: float = 1.1, ax: "Axes | None" = None
) -> Drawn:
    r"""Draw the motion under a score field on the simplex of three, coloured by its circulation.

    The colour is the exterior derivative $d\omega$ of its one-form, the circulation per area of a
    small loop: zero everywhere for a gradient. Where it is the same everywhere, the title gives it
    and there is no colour bar.

    Args:
        field: From a point, a tuple of one column, to its scores.
        points: Places along a side of the simplex.
        density: Of the stream lines.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Examples:
        >>> figure = wh.plot.phase_portrait(wh.rock_paper_scissors, points=21)
    """
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    points, density = (
        _check.count("points", points, 8),
        float(_check.scalar("density", density, above=0.0)),
    )
    across, up, (rightward, upward), curl = _sampled(field, points)
    largest = float(np.nanmax(np.abs(curl)))
    norm = Normalize(-largest, largest) if largest > 1e-12 else Normalize(-1.0, 1.0)
    colours = LinearSegmentedColormap.from_list("turn", [theme().native, GREY, theme().turning])
    axes, drawn = canvas(ax, (5.2, 4.2))
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color=ink(), linewidth=1.0)
    lines = axes.streamplot(
        across,
        up,
        rightward,
        upward,
        color=np.ma.masked_invalid(curl),
        cmap=colours,
        norm=norm,
        density=density,
        linewidth=1.1,
        arrowsize=1.1,
    )
    loop = _loop()
    across, up = (np.concatenate([loop, loop[:1]]) @ CORNERS).T
    axes.plot(across, up, ":", color=ink(), linewidth=1.2, gid="loop")
    total = float(circulation(field, (jnp.asarray(loop, dtype=_floating()),)))
    total = total if abs(total) > 1e-12 else 0.0
    constant = np.nanmax(curl) - np.nanmin(curl) <= 1e-6 * max(largest, 1e-6)
    if not constant:
        axes.figure.colorbar(
            lines.lines,
            ax=axes,
            label=r"circulation per area $d\omega$ ($+$: counter-clockwise)",
            shrink=0.8,
        )
    for number, (corner, shift) in enumerate(
        zip(CORNERS, ((-0.05, -0.04), (0.05, -0.04), (0.0, 0.04)), strict=True)
    ):
        axes.text(
            corner[0] + shift[0],
            corner[1] + shift[1],
            f"$p_{number + 1}$",
            ha="center",
            va="center",
        )
    level = float(np.nanmedian(curl)) if largest > 1e-12 else 0.0
    everywhere = rf", $d\omega = {level:.3g}$ everywhere" if constant else ""
    axes.set_title(rf"$\oint\omega = {total:.3g}$ around the dotted loop{everywhere}")
    axes.set(aspect="equal", xlim=(-0.12, 1.12), ylim=(-0.1, 0.97))
    axes.set_axis_off()
    return drawn


def _floating() -> np.dtype:
    return jnp.zeros(()).dtype


def _loop() -> np.ndarray:
    """Points around the middle of the simplex, counter-clockwise in the picture."""
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    flat = CORNERS.mean(axis=0) + LOOP * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return _columns(flat)


def _columns(flat: np.ndarray) -> np.ndarray:
    """The columns at places of the picture, one per row."""
    second_and_third = np.linalg.solve((CORNERS[1:] - CORNERS[0]).T, (flat - CORNERS[0]).T).T
    return np.concatenate(
        [1 - second_and_third.sum(axis=1, keepdims=True), second_and_third], axis=1
    )


def _sampled(field: Field, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Velocity and exterior derivative on a grid over the picture.

    Not a number outside the simplex.
    """
    across, up = np.linspace(0, 1, points), np.linspace(0, CORNERS[2, 1], points)
    columns = _columns(np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2))
    inside = columns.min(axis=1) > 1e-6
    chosen = jnp.asarray(
        columns[inside] / columns[inside].sum(axis=1, keepdims=True), dtype=_floating()
    )

    def at(column: jax.Array) -> tuple[jax.Array, jax.Array]:
        (score,) = field((column,))
        return simplex.velocity(column, jnp.asarray(score)), exterior_derivative(field, (column,))[
            0, 1
        ]

    moved, turned = (np.asarray(found) for found in jax.vmap(at)(chosen))
    _check.finite("the field", moved, turned)
    velocity, curl = np.full((points * points, 2), np.nan), np.full(points * points, np.nan)
    velocity[inside], curl[inside] = moved @ CORNERS, turned
    shape = (points, points)
    return across, up, velocity.T.reshape(2, *shape), curl.reshape(shape)
