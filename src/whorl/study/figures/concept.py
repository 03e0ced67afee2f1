"""Concept.

The geometry of conservative learning, on networks small enough to draw whole (the paper's Fig. 1).

Nothing here is freehand, and nothing comes from a study: every width, arrow, path and contour is
computed by the library, from networks chosen so that the picture is plain. (a) A network that
redistributes a fixed flow, and the loop that a boundary law closes around it. (b, c) The whole loss
landscape of a network with two free parameters, without and with a turn. (d, e) What the sign of
the coefficient means for one step. (f) How two learners that differ in a few turns come to visit
different states.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from whorl import palette
from whorl.curvature import curvature, turn_scores
from whorl.feedback import direct, rotational
from whorl.flow import flow
from whorl.learning.policy import adaptive
from whorl.learning.trajectory import Pair, train
from whorl.reciprocity import certify, closed_loop
from whorl.response import response
from whorl.study.figures import style
from whorl.system import loss
from whorl.systems.layered import Network

CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}
SOURCE, TARGET = np.array([[1.0]]), np.array([[0.42, 0.33, 0.25]])
START = (0.4, 0.05)  # of the two free shares of the network in (b), (c) and (f)
OMEGA = -2.5  # turn in (c)
GRID = np.linspace(0.005, 0.995, 120)
STEP = 0.02  # step in (d) and (e)
# One column, unit input: where it starts and where it should go (the paper's Sec. VI).
EXAMPLES = (([0.1, 0.1, 0.8], [0.3, 0.4, 0.3]), ([1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2]))
NOTE = (
    "Illustration: computed from small networks chosen for the picture; it contains no data of a"
    " study."
)


def two_shares(first: float, second: float) -> Network:
    """A source that sends `first` to a node, which sends `second` of it to output 1 and the rest to
    output 2; all else goes to output 3.
    """
    layers = [
        np.array([[first], [1 - first]]),
        np.array([[second, 0.0], [1 - second, 0.0], [0.0, 1.0]]),
    ]
    return Network(layers, support=[layer > 0 for layer in layers])


def shares(states: Network) -> tuple[np.ndarray, np.ndarray]:
    """The two free shares along a path of networks."""
    return np.asarray(states.layers[0][..., 0, 0]), np.asarray(states.layers[1][..., 0, 0])


@style.styled
def draw(tables: style.Tables | None = None) -> Figure:
    """Draw the figure. It needs no tables, and takes none into account."""
    del tables
    figure = style.figure(11.6)
    rows = figure.add_gridspec(2, 1, height_ratios=(1.12, 1))
    top, bottom = (
        rows[0].subgridspec(1, 3, width_ratios=(1.75, 1, 1)),
        rows[1].subgridspec(1, 3, width_ratios=(1, 1, 1.45)),
    )
    with jax.enable_x64(True):
        circuit(figure.add_subplot(top[0]))
        heights = loss_over(GRID)
        landscape(figure.add_subplot(top[1]), heights, 0.0, r"$\bf(b)$ reciprocal path")
        landscape(
            figure.add_subplot(top[2]), heights, OMEGA, r"$\bf(c)$ turning path, same landscape"
        )
        for place, (start, target) in enumerate(EXAMPLES):
            one_step(figure.add_subplot(bottom[place]), start, target, "de"[place])
        drift(figure.add_subplot(bottom[2]))
    style.note(figure, NOTE)
    return figure


def circuit(axes: Axes) -> None:
    """Panel a: widths are flows; the two small matrices are closed loops of this very network."""
    style.letter(axes, "a", "conserved flow and the closed loop around it")
    axes.set(xlim=(-0.1, 10), ylim=(-0.75, 6.5))
    axes.set_axis_off()
    net = Network.random((3, 3, 3), imbalance=1.6, floor=0.05, seed=4)
    amounts = [np.asarray(row[0]) for row in net.trace(jnp.asarray([[0.5, 0.3, 0.2]]))]
    across, up = (0.7, 3.1, 5.5), (5.35, 4.15, 2.95)
    for layer, weights in enumerate(net.layers):
        for source in range(3):
            for goal in range(3):
                carried = float(weights[goal, source]) * amounts[layer][source]
                ends = (across[layer], across[layer + 1]), (up[source], up[goal])
                look: dict[str, Any] = {"color": palette.SKY, "solid_capstyle": "butt"}
                axes.plot(*ends, linewidth=12 * carried, gid="edge", zorder=1, **look)
                head = tuple(0.34 * np.array(ends)[:, 0] + 0.66 * np.array(ends)[:, 1])
                tip = _arrow(palette.BLUE, 0.0, 5 + 16 * carried)
                axes.annotate("", head, (across[layer], up[source]), zorder=2, arrowprops=tip)
    for place, row in zip(across, amounts, strict=True):
        edge: dict[str, Any] = {"color": "white", "edgecolors": palette.INK, "linewidths": 0.9}
        axes.scatter([place] * 3, up, s=30 + 330 * row, zorder=3, **edge)
        axes.text(place, 2.36, rf"$\Sigma={row.sum():.0f}$", **CENTRED, fontsize=7.5)
    for place, text in zip(across, ("input $x$", "", "output $F$"), strict=True):
        axes.text(place, 5.95, text, ha="center", va="bottom", fontsize=7.5)
    _loop(axes)
    _matrices(axes, net)


def _loop(axes: Axes) -> None:
    """The way from the outputs through the law and back."""
    box: dict[str, Any] = {"boxstyle": "round,pad=0.3", "facecolor": "white", "linewidth": 0.8}
    law = "boundary law\n$v=\\mathcal{B}\\,e$"
    axes.text(8.5, 4.15, "residual\n$e=y-F$", bbox={**box, "edgecolor": palette.INK}, **CENTRED)
    axes.text(8.5, 2.0, law, bbox={**box, "edgecolor": palette.VERMILION}, **CENTRED)
    arrow = _arrow(palette.VERMILION, 1.3, 9)
    axes.annotate("", (7.35, 4.15), (6.0, 4.15), arrowprops={**arrow, "color": palette.INK})
    axes.annotate("", (8.5, 2.75), (8.5, 3.42), arrowprops=arrow)
    axes.annotate("", (0.0, 1.98), (7.05, 1.98), arrowprops={**arrow, "arrowstyle": "-"})
    axes.annotate("", (0.0, 4.15), (0.0, 1.98), arrowprops={**arrow, "arrowstyle": "-"})
    axes.annotate("", (0.36, 4.15), (0.0, 4.15), arrowprops=arrow)
    words = r"back by $J^{\mathsf{T}}$; columns move by $M$"
    axes.text(3.5, 1.9, words, ha="center", va="top", color=palette.VERMILION, fontsize=7.5)


def _arrow(colour: str, width: float, size: float) -> dict[str, Any]:
    ends = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
    return {**ends, "mutation_scale": size, "color": colour, "linewidth": width}


def _matrices(axes: Axes, net: Network) -> None:
    """The closed loop of the network under a reciprocal law, and with a skew term."""
    driven = response(net, [[0.5, 0.3, 0.2]])
    laws = ((direct(), 1.15, "direct law"), (rotational(1.0, 1.0), 5.95, "with a skew term"))
    for law, left, words in laws:
        loop = closed_loop(driven, law)
        matrix, inset = (
            np.asarray(loop.dense()),
            axes.inset_axes((left - 0.95, -0.7, 1.75, 1.9), transform=axes.transData),
        )
        most = np.abs(matrix).max()
        inset.imshow(matrix, cmap="PuOr", vmin=-most, vmax=most, aspect="auto")
        for (row, column), value in np.ndenumerate(matrix):
            colour = "white" if abs(value) > 0.6 * most else palette.INK
            sign = "+" if value > 0 else "−"
            inset.text(column, row, sign, **CENTRED, fontsize=8.5, color=colour)
        inset.set_xticks([])
        inset.set_yticks([])
        index = certify(loop).index
        words = f"{words}\n{index:.0%} symmetric"
        axes.text(left + 0.95, 0.25, words, ha="left", va="center", fontsize=7.5)


def loss_over(grid: np.ndarray) -> np.ndarray:
    """The loss of the network with two free shares, for all pairs of them.

    The first varies along columns.
    """

    def at(first: jax.Array, second: jax.Array) -> jax.Array:
        upper, lower = (
            jnp.stack([second, 1 - second, jnp.zeros_like(second)]),
            jnp.asarray([0.0, 0.0, 1.0]),
        )
        return loss(
            whole.with_blocks(
                [jnp.stack([first, 1 - first])[:, None], jnp.stack([upper, lower], axis=1)]
            ),
            SOURCE,
            TARGET,
        )

    whole = two_shares(*START)
    first, second = np.meshgrid(grid, grid)
    return np.asarray(jax.jit(jax.vmap(at))(first.ravel(), second.ravel())).reshape(first.shape)


def landscape(axes: Axes, heights: np.ndarray, omega: float, title: str) -> None:
    """Panels b and c.

    Every state of the network is a point of the square, so that nothing is hidden behind the slice.
    """
    axes.set_title(title)
    levels = np.quantile(heights, np.linspace(0, 1, 14))
    axes.contourf(GRID, GRID, heights, levels, cmap="Greys", alpha=0.45)
    axes.contour(GRID, GRID, heights, levels, colors=palette.GREY, linewidths=0.35)
    net = two_shares(*START)
    across, up = shares(
        flow(net, SOURCE, TARGET, rotational(1.0, omega), np.linspace(0.0, 5.0, 81)).system
    )
    colour, line = (palette.PURPLE, "--") if omega else (palette.BLUE, "-")
    axes.plot(across, up, color=colour, linestyle=line, linewidth=1.5, gid="path", zorder=3)
    _arrows(axes, net)
    axes.plot(*START, marker="o", color=palette.INK, markersize=3.5, zorder=5)
    axes.plot(across[-1], up[-1], marker="*", color=palette.INK, markersize=7, zorder=5)
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1),
        xticks=(0, 0.5, 1),
        yticks=(0, 0.5, 1),
        xlabel="share sent to the inner node",
    )
    if omega:
        axes.set_yticklabels([])
    else:
        axes.set_ylabel("its share to output 1")


def _arrows(axes: Axes, net: Network) -> None:
    """Descent and skew velocity at the common start; the skew one lies along the level set."""
    driven = response(net, SOURCE)
    error = TARGET - np.asarray(driven.predictions)
    for potential, colour, label, shift in zip(
        rotational(1.0, OMEGA).parts(driven, error),
        (palette.BLUE, palette.GOLD),
        ("descent", "skew"),
        ((5, 1), (-3, -3)),
        strict=True,
    ):
        sign = 1.0 if label == "descent" else np.sign(OMEGA)
        velocity = sign * np.array([float(layer[0, 0]) for layer in driven.velocities(potential)])
        tip = tuple(np.asarray(START) + 0.24 * velocity / np.linalg.norm(velocity))
        axes.annotate("", tip, START, zorder=6, arrowprops=_arrow(colour, 2.0, 10))
        beside = {"ha": "left" if shift[0] > 0 else "right", "va": "center", "fontsize": 7.5}
        said = axes.annotate(label, tip, xytext=shift, textcoords="offset points", **beside)
        said.set_path_effects([withStroke(linewidth=2.2, foreground="white")])


def one_step(axes: Axes, start: list[float], target: list[float], name: str) -> None:
    """Panels d and e.

    The loss after one step against the amount of turning; the mean of the two turns lies on their
    chord.
    """
    net = Network([np.array(start)[:, None]])
    coefficient = float(curvature(net, SOURCE, [target], selected=0).coefficient)
    straight, turning = turn_scores(net, SOURCE, [target], selected=0)

    def after(amount: float) -> float:
        scores = [b + amount * r for b, r in zip(straight, turning, strict=True)]
        return float(loss(net.stepped(scores, STEP), SOURCE, [target]))

    amounts = np.linspace(-1.35, 1.35, 55)
    still = after(0.0)
    curve = np.array([after(amount) - still for amount in amounts]) / STEP**2
    ends = np.array([after(-1.0) - still, after(1.0) - still]) / STEP**2
    title = (
        rf"$\mathcal{{Q}}={coefficient:.3f}$: a turn {'lowers' if coefficient < 0 else 'raises'}"
        r" the loss"
    )
    style.letter(axes, name, title)
    colour, reach = (
        (palette.LIGHT.helps if coefficient < 0 else palette.LIGHT.hurts),
        float(np.ptp(curve)),
    )
    axes.plot(amounts, curve, color=colour, gid="curve")
    axes.plot([-1, 1], ends, "--", color=palette.GREY, linewidth=0.9, zorder=1)
    axes.plot([-1, 1], ends, "s", color=colour, markersize=4, label="turn left or right")
    axes.plot(0, 0, "o", color=palette.INK, markersize=5, label="no turn")
    open_: dict[str, Any] = {"color": "white", "markeredgecolor": colour, "markeredgewidth": 1.3}
    axes.plot(0, ends.mean(), "D", markersize=5, label="mean of both turns", **open_)
    arrow = {"arrowstyle": "-|>", "mutation_scale": 8, "color": palette.INK}
    arrow |= {"shrinkA": 3, "shrinkB": 3.5}
    axes.annotate("", (0, ends.mean()), (0, 0), arrowprops=arrow)
    axes.set_ylim(curve.min() - 0.08 * reach, curve.max() + 0.08 * reach)
    axes.set_xticks((-1, 0, 1), ("$-1$", "0", "1"))
    axes.set_xlabel("amount of turning")
    axes.set_ylabel(r"loss less straight step, over $\eta^2$" if name == "d" else "")
    if name == "d":
        axes.legend(loc="lower center", handletextpad=0.3)


def coupled() -> Pair:
    """The two learners of panel f.

    The same sample every time, one sense of turning, a gate that closes after some updates.
    """
    updates = 14
    policy = adaptive(0.3, omega=1.0, law=rotational())
    order, turns = np.zeros(updates, dtype=int), np.ones(updates, dtype=int)
    return train(
        two_shares(*START), SOURCE, TARGET, policy=policy, schedule=order, turns=turns, stride=1
    )


def drift(axes: Axes) -> None:
    """Panel f: states that were visited, update by update."""
    style.letter(axes, "f", "accepted turns, then drift: visited states")
    pair = coupled()
    assert pair.states is not None
    assert pair.updates is not None
    nonreciprocal, native = (shares(states) for states in pair.states)
    for number in range(nonreciprocal[0].size):
        ends = [(path[0][number], path[1][number]) for path in (nonreciprocal, native)]
        axes.plot(*np.transpose(ends), color=palette.GREY, linewidth=0.5, gid="apart", zorder=1)
    axes.plot(*native, "-o", color=palette.BLUE, markersize=3.5, label="reciprocal", zorder=3)
    face = [
        palette.PURPLE if amount > 0 else "white"
        for amount in [*np.asarray(pair.updates.amount), 0.0]
    ]
    axes.plot(*nonreciprocal, "--", color=palette.PURPLE, zorder=2)
    axes.scatter(
        *nonreciprocal,
        s=15,
        marker="s",
        c=face,
        edgecolors=palette.PURPLE,
        linewidths=1.0,
        zorder=3,
    )
    look: dict[str, Any] = {"color": palette.PURPLE, "markersize": 3.8}
    axes.plot([], [], "--s", markerfacecolor="white", label="nonreciprocal", **look)
    axes.plot([], [], "s", label="turn accepted", **look)
    axes.plot([], [], color=palette.GREY, linewidth=0.5, label="same update")
    both = TARGET[0, :2].sum()
    axes.plot(both, TARGET[0, 0] / both, "*", color=palette.INK, markersize=8, zorder=4)
    axes.plot(*START, "o", color=palette.INK, markersize=4.5, zorder=5)
    axes.set_xlabel("share sent to the inner node")
    axes.set_ylabel("its share to output 1")
    axes.legend(loc="lower right")
