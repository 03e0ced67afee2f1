r"""Is this measured learner reciprocal?

An experimenter applies errors (or potentials) to a learner and measures how its outputs move. If
$\dot F = \mathcal{R}e$ with a symmetric $\mathcal{R}$, the learner follows a gradient. It follows a
gradient in another metric if $\mathcal{R}$ is diagonalisable with real eigenvalues, and it turns if
there are complex ones. `read` takes a table, `certify` takes arrays, and both end in a `Finding` that prints a
verdict in plain words.

    from whorl import measured
    print(measured.judge(measured.read("measurements.csv"), time_unit="s"))
    print(measured.certify(residuals, velocities, repeat=repeat))
"""

from collections.abc import Sequence
from typing import Any

from whorl.measured.bootstrap import Interval as Interval
from whorl.measured.estimate import TOL
from whorl.measured.finding import Finding as Finding
from whorl.measured.finding import Loop as Loop
from whorl.measured.finding import judge as judge
from whorl.measured.history import History as History
from whorl.measured.history import follow as follow
from whorl.measured.history import read_series as read_series
from whorl.measured.intake import Measurements as Measurements
from whorl.measured.page import write as write
from whorl.measured.reading import Numbers
from whorl.measured.reading import collect as collect
from whorl.measured.reading import read as read
from whorl.measured.template import balanced as balanced
from whorl.measured.template import template as template
from whorl.measured.template import write_template as write_template
from whorl.measured.words import Said as Said


def certify(
    residuals: Numbers | None,
    velocities: Numbers,
    *,
    potentials: Numbers | None = None,
    sample: Sequence[Any] | Numbers | None = None,
    repeat: Numbers | None = None,
    uncertainty: Numbers | None = None,
    residual_uncertainty: float = 0.0,
    time_scale: float = 1.0,
    time_unit: str = "unit time",
    alpha: float = 0.05,
    skew: float = 0.1,
    tol: float = TOL,
    seed: int = 0,
) -> Finding:
    """Judge measurements given as arrays.

    Args:
        residuals: what was applied, target minus output: `(rows, outputs)`, or `(rows, samples,
            outputs)` where samples were driven and read together. None where only potentials were
            recorded.
        velocities: how the outputs moved, of the same shape.
        potentials: the potentials applied at the boundary. Beside residuals they tell the device
            from its controller; alone they make this a test of the physical response.
        sample: a label for every row; each sample then has a loop of its own.
        repeat: a number for every row, sorted within each sample. Rows of one repeat may share
            their noise.
        uncertainty: standard deviation of the velocities: one number, one per row, or one per value.
        residual_uncertainty: standard deviation of the noise in each recorded residual. It biases
            the loop unless it is known, and is then taken out of the sums of products.
        time_scale: velocities are divided by this: the time that passed while the recorded change
            took place.
        time_unit: the name of the unit of time, for words only.
        alpha: the chance of a false alarm that is accepted.
        skew: a skew part, as a share of the loop, for which the repeats needed to see it are worked
            out.
        tol: directions excited less than this, relative to the strongest, are left out.
        seed: of the random signs; the same seed gives the same digits.

    Examples:
        >>> from whorl import measured
        >>> residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
        >>> velocities = residuals + 0.001 * np.random.default_rng(0).standard_normal((36, 3))
        >>> measured.certify(residuals, velocities, repeat=np.repeat(np.arange(12), 3)).turns
        False
    """
    given = {
        "potentials": potentials,
        "sample": sample,
        "repeat": repeat,
        "uncertainty": uncertainty,
        "residual_uncertainty": residual_uncertainty,
        "time_scale": time_scale,
    }
    return judge(
        collect(residuals, velocities, **given),
        alpha=alpha,
        skew=skew,
        tol=tol,
        time_unit=time_unit,
        seed=seed,
    )
