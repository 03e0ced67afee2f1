r"""Would a turn help one step?

The finite-step coefficient (Proposition 3; Eqs. 22, 23, 24, 25, 27).

A step along the reciprocal score plus or minus $\Omega$ times the rotational one lands, averaged
over the two signs, above or below the reciprocal step by $\eta^2\Omega^2\mathcal{Q}$. The
coefficient weighs displacement against bending, $\mathcal{Q} = (\lVert G\rVert^2 -
e^\mathsf{T}H_V)/2N$, and both come from one second-order jet along the exponential path.
"""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from whorl import _check, _precision
from whorl._check import Numbers
from whorl._show import Shown
from whorl.feedback import Law, SpectralLaw, rotational
from whorl.response import Response, response
from whorl.system import Block, Fields, System, checked_data, loss, selected_rows

Scores = tuple[Block, ...]


class Curvature(Shown, eqx.Module):
    """What a turn driven by one sample does to the whole data set, to second order in the step.

    Examples:
        >>> found = wh.curvature(
        ...     wh.Network([[[0.1], [0.1], [0.8]]]), [[1.0]], [[0.3, 0.4, 0.3]], selected=0
        ... )
        >>> found.favourable, found.predicted
        (True, True)
    """

    displacement: Fields  # G = J V, for every sample
    bending: Fields  # H_V, for every sample
    coefficient: Float[Array, ""]  # Q of Eq. 25: below zero, the turn lowers the mean loss
    ratio: Float[Array, ""]  # chi_s of Eq. 27: above one, predict a negative coefficient
    # what of the coefficient the difference of its two terms may have left
    roundoff: Float[Array, ""]
    law: Law  # what made the turn

    @property
    def favourable(self) -> bool:
        """Whether the mean of the two turns lands below the reciprocal step, by more than
        round-off.
        """
        _check.need_known("the coefficient", "compare it with 0 as an array", self.coefficient)
        return bool(self.coefficient < -self.roundoff)

    @property
    def neutral(self) -> bool:
        """Whether the coefficient is zero, up to round-off.

        To second order a turn changes nothing.
        """
        _check.need_known("the coefficient", "compare it with 0 as an array", self.coefficient)
        return bool(abs(self.coefficient) <= self.roundoff)

    @property
    def predicted(self) -> bool:
        """Whether the driving sample alone predicts a favourable turn (ratio above one)."""
        _check.need_known("the ratio", "compare it with 1 as an array", self.ratio)
        return bool(self.ratio > 1)

    def __str__(self) -> str:
        through = f"through {type(getattr(self.law, 'base', self.law)).__name__.lower()}"
        if self.neutral:
            return (
                f"A small turn {through} does not change the mean loss to second order: "
                f"coefficient {float(self.coefficient):.7g}, "
                f"within its round-off {float(self.roundoff):.3g}.\n"
                f"The ratio of the driving sample is {float(self.ratio):.4g}."
            )
        effect = "lowers" if self.favourable else "raises"
        forecast = "the same" if self.predicted == self.favourable else "the opposite"
        return (
            f"A small turn {through} {effect} the mean loss: "
            f"coefficient {float(self.coefficient):.7g}.\n"
            f"The ratio of the driving sample predicts {forecast}: {float(self.ratio):.4g} "
            f"{'>' if self.predicted else '<='} 1."
        )


def turn_scores(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    selected: int | None = None,
    law: Law | None = None,
) -> tuple[Scores, Scores]:
    r"""The reciprocal and the unit rotational score, $s^0$ and $s^1$, driven by the selected sample
    (or by all).

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        selected: The sample whose residual drives; None, the default, lets all of them.
        law: What makes the scores, `rotational(...)`; `rotational()`, the exact turn through the
            repair of the response, if left out.

    Returns:
        Both scores, each with one array per block, of its shape.

    Examples:
        >>> straight, turning = wh.turn_scores(net, x, y, selected=0)
        >>> [score.shape for score in turning]
        [(3, 3), (3, 3)]
    """
    inputs, targets = checked_data(system, inputs, targets)
    return _turn_scores(system, inputs, targets, selected, rotational() if law is None else law)


def turn_velocities(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    selected: int | None = None,
    law: Law | None = None,
) -> tuple[Scores, Scores]:
    r"""How every block moves under the two scores, for a column $U = Q(p)s^0$ and $V = Q(p)s^1$
    (Eq. 22).

    Args:
        system: What learns, with one array per block.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        selected: The sample that drives the turn; None lets all of them.
        law: What makes the scores; `rotational()` if left out.

    Returns:
        U and V, each with one array per block, of its shape. Columns on a simplex sum to zero.

    Raises:
        ValueError: Where the data do not fit the system or `law` names no turn.

    Examples:
        >>> straight, turning = wh.turn_velocities(net, x, y, selected=0)
        >>> bool(np.allclose(turning[0].sum(axis=0), 0))
        True
    """
    straight, turning = turn_scores(system, inputs, targets, selected=selected, law=law)
    return system.velocities_of(straight), system.velocities_of(turning)


def curvature(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    selected: int | None = None,
    law: Law | None = None,
) -> Curvature:
    r"""Would a turn help here? The coefficient $\mathcal{Q}$ of Eq. 25 and the ratio of Eq. 27.

    **The law matters.** Left out, it is `rotational()`, the exact turn through the repair of the
    response, as in the paper's examples and its threshold study. Policies gate on their own law,
    which is `rotational(base=leaky(0.1))` unless told otherwise, as in its horizon study: to see
    what a policy sees, pass `law=policy.law`. The printed sentence names the law.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        selected: The sample that drives the turn; None, the default everywhere, lets all of them.
        law: What makes the scores, `rotational(...)`.

    Returns:
        Coefficient, ratio, and displacement and bending of every sample. Print it.

    Raises:
        ValueError: Where the data do not fit the system, or the law cannot turn through its
            response.

    Examples:
        >>> print(
        ...     wh.curvature(
        ...         wh.Network([[[0.1], [0.1], [0.8]]]), [[1.0]], [[0.3, 0.4, 0.3]], selected=0
        ...     )
        ... )
        A small turn through repair lowers the mean loss: coefficient -0.9271875.
        The ratio of the driving sample predicts the same: 5.88 > 1.
    """
    inputs, targets = checked_data(system, inputs, targets)
    law = rotational() if law is None else law
    predictions, displacement, bending = _turning_jet(system, inputs, targets, selected, law)
    error = targets - predictions
    coefficient = (jnp.sum(displacement**2) - jnp.sum(error * bending)) / (2 * inputs.shape[0])
    terms = (jnp.sum(displacement**2) + jnp.sum(jnp.abs(error * bending))) / (2 * inputs.shape[0])
    roundoff = _precision.noise(system.dtype, error.size, *system.lengths) * terms
    result = Curvature(
        displacement,
        bending,
        coefficient,
        _ratio(error, displacement, bending, selected),
        roundoff,
        law,
    )
    _check.finite("the curvature", result)
    return result


def even_difference(
    system: System,
    inputs: Numbers,
    targets: Numbers,
    *,
    step: ArrayLike,
    selected: int | None = None,
    law: Law | None = None,
) -> Float[Array, ""]:
    r"""The mean loss after the two turns less the mean loss after the reciprocal step, at a finite
    step (left side of Eq. 24).

    Divided by $\eta^2\Omega^2$ it tends to the coefficient. `step` is the step; the law's `omega`
    is the amount of turning.

    Args:
        system: What learns.
        inputs: One row per sample, `(samples, in)`.
        targets: One row per sample, `(samples, out)`.
        step: The step, above 0.
        selected: The sample whose residual drives; None, the default, lets all of them.
        law: What makes the scores, `rotational(...)`; `rotational()`, the exact turn through the
            repair of the response, if left out.

    Returns:
        One number: below zero, the turn helps at this step.

    Examples:
        >>> start = wh.Network([[[0.1], [0.1], [0.8]]])
        >>> round(
        ...     float(wh.even_difference(start, [[1.0]], [[0.3, 0.4, 0.3]], selected=0, step=1e-3))
        ...     / 1e-6,
        ...     3,
        ... )
        -0.927
    """
    inputs, targets = checked_data(system, inputs, targets)
    step = _check.scalar("step", step, above=0.0)
    law = rotational() if law is None else law
    straight, turning = _turn_scores(system, inputs, targets, selected, law)

    def after(amount: ArrayLike) -> Array:
        scores = [s0 + amount * s1 for s0, s1 in zip(straight, turning, strict=True)]
        return loss(system.stepped(scores, step), inputs, targets)

    amount = getattr(law, "omega", 1.0)
    difference = (after(amount) + after(-amount)) / 2 - after(0.0)
    _check.finite("the even difference", difference)
    return difference


def _turning_jet(
    system: System, inputs: Array, targets: Array, selected: int | None, law: Law
) -> tuple[Fields, Fields, Fields]:
    """Predictions and their first two derivatives along the path of the unit rotational score."""
    driven, (_, potential) = _driven(system, inputs, targets, selected, law)
    return system.driven_jet(inputs, driven.trace, potential)


def _turn_scores(
    system: System, inputs: Array, targets: Array, selected: int | None, law: Law
) -> tuple[Scores, Scores]:
    driven, (straight, turning) = _driven(system, inputs, targets, selected, law)
    return driven.scores(straight), driven.scores(turning)


def _driven(
    system: System, inputs: Array, targets: Array, selected: int | None, law: Law
) -> tuple[Response, tuple[Fields, Fields]]:
    """The response of the driving samples, and the reciprocal and the rotational potential on
    it.
    """
    if not isinstance(law, Law) or isinstance(law, SpectralLaw):
        raise ValueError(
            "law must be rotational(...), since it has to name a turn, but it is "
            f"{_check.shown(law)}"
        )
    driven = response(system, inputs, selected=selected)
    return driven, law.parts(driven, selected_rows(targets, selected) - driven.predictions)


def _ratio(
    error: Fields, displacement: Fields, bending: Fields, selected: int | None
) -> Float[Array, ""]:
    """Bending over displacement on the driving sample.

    0 where nothing is displaced, since then there is no turn to predict.
    """
    e, g, h = (selected_rows(field, selected) for field in (error, displacement, bending))
    size = jnp.sum(g**2)
    return jnp.where(size > 0, jnp.sum(e * h) / jnp.where(size > 0, size, 1.0), 0.0)
