"""Where did the land go?

The same flow network learned by the physical law and by the standard optimisers, on the same terms.

Sixty regions were surveyed twice, years apart; each survey counts field plots of four kinds of land
cover. A column-stochastic matrix says where each kind went, and has to be found from the shares
alone. Every learner starts from the same matrix, sees the same regions in the same order and steps
under the same envelope. "One" lets the scheduled region drive an update, "all" lets all of them, at
so many times the work; losses are means over regions that were held back.

    python examples/composition_regression.py
"""

import jax
import numpy as np

import whorl as wh
from whorl.learning import baseline
from whorl.regress import FlowRegressor

KINDS = ("forest", "cropland", "grassland", "built-up")
TRANSITIONS = np.array(  # from the kind of the column to the kind of the row
    [
        [0.86, 0.04, 0.10, 0.01],
        [0.05, 0.80, 0.15, 0.01],
        [0.07, 0.10, 0.68, 0.02],
        [0.02, 0.06, 0.07, 0.96],
    ]
)
PLOTS, REGIONS, EPOCHS, SCALE, MU = 400, 60, 20, 0.3, 0.1


def surveys(seed: int, regions: int = REGIONS) -> tuple[np.ndarray, np.ndarray]:
    """Plot counts of two surveys.

    Shares drawn region by region, moved by the transitions, and sampled.
    """
    rng = np.random.default_rng(seed)
    before = rng.dirichlet([4.0, 3.0, 2.0, 0.8], size=regions)
    after = before @ TRANSITIONS.T
    return tuple(
        np.array([rng.multinomial(PLOTS, row) for row in shares]) for shares in (before, after)
    )  # pyright: ignore[reportReturnType]


def closed(counts: np.ndarray) -> np.ndarray:
    """Shares from counts."""
    return counts / counts.sum(axis=1, keepdims=True)


def compared() -> list[tuple[str, str, int, float, float]]:
    """Learner, who drives, residuals an update, held-back loss after the run, distance to the true
    transitions.
    """
    (x, y), (x_new, y_new) = ([closed(counts) for counts in surveys(seed)] for seed in (1, 2))
    start = wh.Network.random((4, 4), imbalance=0.5, floor=0.1, seed=3)
    # The leaky law of all regions at once would repeat the row of Gauss-Newton, through a response
    # with a row for every output of each.
    rules = {
        "natural gradient": (baseline.natural_gradient(), (False, True)),
        "exponentiated gradient": (baseline.exponentiated_gradient(), (False, True)),
        "metric Gauss-Newton": (baseline.gauss_newton(MU), (False, True)),
        "leaky law (physical)": (baseline.boundary(wh.leaky(MU)), (False,)),
    }
    rows = []
    for name, (rule, drives) in rules.items():
        for full in drives:
            run = baseline.learn(
                start,
                x,
                y,
                rule=rule,
                scale=SCALE,
                epochs=EPOCHS,
                seed=5,
                full_batch=full,
                record=False,
            )
            found = float(wh.loss(run.system, x_new, y_new))
            off = float(np.abs(np.asarray(run.system.layers[0]) - TRANSITIONS).max())
            rows.append((name, "all" if full else "one", run.driving, found, off))
    return rows


def main() -> list[tuple[str, str, int, float, float]]:
    """Compute and print."""
    jax.config.update("jax_enable_x64", True)
    rows = compared()
    x_new, y_new = (closed(counts) for counts in surveys(2))
    print(f"{REGIONS * EPOCHS} updates each, scale {SCALE}, damping {MU}\n")
    print(
        f"{'learner':<24} {'driven by':>9} {'residuals':>10} {'held-back loss':>15} "
        f"{'worst entry off by':>19}"
    )
    for name, driven, residuals, loss, off in rows:
        print(f"{name:<24} {driven:>9} {residuals:>10} {loss:>15.3e} {off:>19.3f}")
    for name, prediction in (
        ("no change at all", x_new),
        ("the true transitions", x_new @ TRANSITIONS.T),
    ):
        print(
            f"{name:<24} {'':>9} {'':>10} "
            f"{np.sum((y_new - prediction) ** 2) / (2 * REGIONS):>15.3e}"
        )

    model = FlowRegressor(scale=SCALE, mu=MU, epochs=EPOCHS).fit(*surveys(1))
    print(
        f"\nThe same through scikit-learn, from plot counts: R^2 = {model.score(*surveys(2)):.3f} "
        "on the regions held back."
    )
    print("Where each kind went, in per cent:\n")
    print(f"{'':<12}" + "".join(f"{kind:>12}" for kind in KINDS))
    for kind, shares in zip(KINDS, model.layers_[0], strict=True):
        print(f"{'to ' + kind:<12}" + "".join(f"{100 * share:>12.0f}" for share in shares))
    return rows


if __name__ == "__main__":
    main()
