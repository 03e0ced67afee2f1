"""First light.

A flow network that follows a gradient, the same network made to turn, and the paper's exact
numbers.

Prints a table of published and recomputed values, and draws the picture of the README: one network
learns one sample twice, once under a reciprocal law and once under a rotational one. Both lose
error at the same rate at every instant; only one of them turns.

    python examples/first_light.py --out runs/first_light
"""

import argparse
from pathlib import Path

import jax
import numpy as np

import whorl as wh

INPUTS = np.array([[0.6, 0.3, 0.1]])
TARGETS = np.array([[0.40, 0.35, 0.25]])
STEPS = np.array([1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4])
# One layer, one unit input: where the columns start, where they should go, and what the paper
# prints.
EXAMPLES = {
    "negative": ([0.1, 0.1, 0.8], [0.3, 0.4, 0.3], "-0.9271875", "1.999921"),
    "positive": ([1 / 3, 1 / 3, 1 / 3], [0.5, 0.3, 0.2], "0.026666...", "1.999405"),
}


def network() -> wh.Network:
    """Three layers that send most of the flow to the first output."""
    rng = np.random.default_rng(7)
    logits = [0.5 * rng.standard_normal((3, 3)) for _ in range(2)]
    last = np.log([[0.70, 0.66, 0.62], [0.08, 0.12, 0.10], [0.22, 0.22, 0.28]])
    return wh.Network.random((3, 3, 3, 3), logits=[*logits, last])


def even_differences(start: list[float], target: list[float]) -> np.ndarray:
    """The loss of a turn, averaged over its two senses, less that of the straight step, for every
    registered step.
    """
    net = wh.Network([np.array(start)[:, None]])
    differences = [
        wh.even_difference(net, [[1.0]], [target], selected=0, step=step) for step in STEPS
    ]
    return np.array([float(difference) for difference in differences])


def rows(turning: wh.Flow) -> list[tuple[str, str, str]]:
    """Quantity, published, here."""
    table = []
    for name, (start, target, coefficient, slope) in EXAMPLES.items():
        net = wh.Network([np.array(start)[:, None]])
        here = float(wh.curvature(net, [[1.0]], [target], selected=0).coefficient)
        differences = even_differences(start, target)
        fitted = np.polyfit(np.log(STEPS), np.log(np.abs(differences)), 1)[0]
        table += [
            (f"coefficient Q, {name} example", coefficient, f"{here:.7f}"),
            (f"slope of the even difference, {name}", slope, f"{fitted:.6f}"),
            (
                f"relative error of Q at step 1e-4, {name}",
                "< 1e-4",
                f"{abs(differences[-1] / STEPS[-1] ** 2 / here - 1):.2e}",
            ),
        ]
    response = wh.response(network(), INPUTS)
    certificate = wh.certify(wh.closed_loop(response, wh.rotational(alpha=1.0, omega=4.0)))
    pair = certificate.eigenvalues[-1]
    distance = np.linalg.norm(response.dense() - response.gram()) / np.linalg.norm(response.gram())
    return [
        *table,
        ("layer sum against J M J^T, relative", "< 1e-10", f"{distance:.1e}"),
        (
            "closed loop, alpha = 1, Omega = 4",
            "1 +- 4i",
            f"{float(pair.real):.12f} +- {abs(float(pair.imag)):.12f}i",
        ),
        ("spiral against its closed form", "exact", f"{spiral_error(turning):.1e}"),
    ]


def spiral_error(turning: wh.Flow) -> float:
    """How far the integrated residual is from exp(-t) (cos 4t - C sin 4t) e."""
    start = np.asarray(turning.residual[0, 0])
    times = np.asarray(turning.times)[:, None]
    closed_form = np.exp(-times) * (
        np.cos(4 * times) * start - np.sin(4 * times) * (wh.quarter_turn(3) @ start)
    )
    return float(np.abs(closed_form - np.asarray(turning.residual[:, 0])).max())


def draw(straight: wh.Flow, turning: wh.Flow, path: Path) -> None:
    """The picture.

    Paths on the output simplex, the residual's spiral, equal losses, and the two signs of
    curvature.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    blue, vermilion = "#0072B2", "#D55E00"
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    plane = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]).T / np.sqrt([2.0, 6.0])
    plt.rcParams.update(
        {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}
    )
    figure, grid = plt.subplots(2, 2, figsize=(8.6, 7.0), layout="constrained")
    axes = grid.ravel()
    styles = ((straight, blue, "-", "reciprocal"), (turning, vermilion, "--", "rotational"))

    simplex = axes[0]
    simplex.set_title("prediction on the output simplex", pad=14)
    simplex.fill(*corners.T, facecolor="#f4f4f2", edgecolor="#888888", linewidth=1)
    for name, corner, offset in zip(
        "123", corners, ((-0.06, -0.04), (0.06, -0.04), (0, 0.05)), strict=True
    ):
        simplex.text(
            *(corner + offset), f"output {name}", ha="center", va="center", color="#444444"
        )
    for flow, colour, style, label in styles:
        simplex.plot(
            *((TARGETS[0] - np.asarray(flow.residual[:, 0])) @ corners).T,
            style,
            color=colour,
            label=label,
        )
    simplex.plot(*(TARGETS[0] @ corners), "*", color="black", markersize=9, label="target")
    simplex.plot(
        *((TARGETS[0] - np.asarray(straight.residual[0, 0])) @ corners),
        "o",
        color="black",
        markersize=4,
        label="start",
    )
    simplex.legend(frameon=False, loc="upper left", bbox_to_anchor=(-0.05, 1.0))
    simplex.set_aspect("equal")
    simplex.set_axis_off()

    spiral = axes[1]
    spiral.set_title(r"residual: $\dot e = -(\alpha P + \Omega C)\,e$")
    spiral.axhline(0, color="#cccccc", linewidth=0.8)
    spiral.axvline(0, color="#cccccc", linewidth=0.8)
    for flow, colour, style, _ in styles:
        spiral.plot(*(np.asarray(flow.residual[:, 0]) @ plane).T, style, color=colour)
    spiral.set_aspect("equal", adjustable="datalim")
    spiral.set_xlabel(r"$(e_1 - e_2)/\sqrt{2}$")
    spiral.set_ylabel(r"$(e_1 + e_2 - 2e_3)/\sqrt{6}$")

    losses = axes[2]
    losses.set_title("loss: the same at every instant")
    for (flow, colour, style, _), width in zip(styles, (4.0, 1.6), strict=True):
        losses.semilogy(
            flow.times,
            flow.total_loss,
            style,
            color=colour,
            linewidth=width,
            alpha=0.5 if width > 2 else 1.0,
        )
    losses.set_xlabel("time")
    losses.set_ylabel("selected-sample loss")

    curvature = axes[3]
    curvature.set_title("one finite step: curvature decides")
    for (name, (start, target, _, _)), marker, colour in zip(
        EXAMPLES.items(), "os", ("#009E73", "#CC79A7"), strict=True
    ):
        size = np.abs(even_differences(start, target))
        curvature.loglog(
            STEPS,
            size,
            marker,
            color=colour,
            markersize=5,
            label=f"turn {'helps' if name == 'negative' else 'hurts'}",
        )
        curvature.loglog(STEPS, size[0] * (STEPS / STEPS[0]) ** 2, "-", color=colour, linewidth=0.8)
    curvature.set_xlabel(r"step $\eta$")
    curvature.set_ylabel("|turned $-$ straight| loss")
    curvature.legend(frameon=False, title="lines: slope two")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Compute, print, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/first_light"),
        help="folder for the picture (default: %(default)s)",
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_enable_x64", True)

    times = np.linspace(0.0, 4.0, 161)
    straight = wh.flow(network(), INPUTS, TARGETS, wh.repair(), times, selected=0)
    turning = wh.flow(
        network(), INPUTS, TARGETS, wh.rotational(alpha=1.0, omega=4.0), times, selected=0
    )
    print(f"{'quantity':<44} {'published':>14}   here")
    for quantity, published, here in rows(turning):
        print(f"{quantity:<44} {published:>14}   {here}")
    draw(straight, turning, out / "first_light.png")
    print(f"\npicture: {out / 'first_light.png'}")


if __name__ == "__main__":
    main()
