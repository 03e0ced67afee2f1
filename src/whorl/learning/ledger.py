r"""The ledger: where the final gap came from (Eqs. 26, C3 to C7).

Every update of a coupled pair splits into four differences of loss: *even*, what the two senses of
the turn do on average; *handedness*, what the sense that was taken adds; *step*, the cost of a step
other than the native one; *drift*, how differently the native learner would progress from the two
states. Their sum over all updates is the final gap, exactly. It is an account relative to a
declared reference, not a unique cause.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check
from whorl._show import Shown

Losses = Float[Array, "*pairs"] | Float[np.ndarray, "*pairs"]  # one, or one per pair
TERMS = ("even", "handedness", "step", "drift")


class Terms(Shown, eqx.Module):
    """The four terms: of one update, of every update, or summed.

    Examples:
        >>> pair = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)
        >>> pair.ledger.sums.even.shape, pair.updates.terms.even.shape
        ((), (12,))
    """

    even: Float[Array, "*updates"]
    handedness: Float[Array, "*updates"]
    step: Float[Array, "*updates"]
    drift: Float[Array, "*updates"]

    @property
    def total(self) -> Float[Array, "*updates"]:
        """The four together."""
        return self.even + self.handedness + self.step + self.drift

    def __str__(self) -> str:
        return _means(self, (*TERMS, "total"))


def terms(plus: Array, minus: Array, taken: Array, zero: Array, own: Array, other: Array) -> Terms:
    """The terms from six increments of loss.

    At the nonreciprocal state: `plus` and `minus` turn either way, `taken` is the one that
    happened, `zero` does not turn but takes the same step, `own` takes the native step. `other` is
    the native learner's increment at its own state.

    Examples:
        >>> from whorl.learning import ledger
        >>> terms = ledger.terms(
        ...     *(jnp.array(loss) for loss in (-3.0, -1.0, -3.0, -2.5, -2.0, -4.0))
        ... )
        >>> float(terms.even), float(terms.handedness), float(terms.step), float(terms.drift)
        (0.5, -1.0, -0.5, 2.0)
    """
    mean = (plus + minus) / 2
    return Terms(mean - zero, taken - mean, zero - own, own - other)


class Outcome(Shown, eqx.Module):
    """Losses after an update, of what was done and of what was not.

    The ledger's terms are their differences.

    Examples:
        >>> seen = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0).updates.outcome
        >>> bool(np.all(seen.taken >= 0)), seen.amount.shape
        (True, (12,))
    """

    taken: Float[Array, "*updates"]  # the turn that happened
    opposite: Float[Array, "*updates"]  # the other turn
    still: Float[Array, "*updates"]  # no turn, the same step
    own: Float[Array, "*updates"]  # no turn, the native step at the nonreciprocal state
    native: Float[Array, "*updates"]  # the native learner, at its own state
    step: Float[Array, "*updates"]
    amount: Float[Array, "*updates"]

    def __str__(self) -> str:
        return _means(self, ("taken", "opposite", "still", "own", "native", "step", "amount"))


class Ledger(Shown, eqx.Module):
    """The account of a coupled pair. Print it, or draw it with `whorl.plot.waterfall`.

    Examples:
        >>> pair = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)
        >>> pair.ledger.closed, bool(np.isclose(pair.ledger.sums.total, pair.ledger.gap))
        (True, True)
    """

    sums: Terms
    updates: Terms | None  # for every update, where they were kept
    start: Losses  # the common initial loss
    nonreciprocal: Losses  # final losses
    native: Losses
    tol: float = eqx.field(static=True, default=1e-14)

    @property
    def gap(self) -> Losses:
        """Final loss of the nonreciprocal learner less that of the native one.

        Above zero, native ends lower.
        """
        return self.nonreciprocal - self.native

    @property
    def closure(self) -> Any:
        """How far the four sums are from the gap, relative to the largest loss involved.

        One number, or one per pair.
        """
        _check.need_known(
            "the account", "close it outside, or compare sums.total with gap as arrays", self.sums
        )
        losses = [np.asarray(one) for one in (self.start, self.nonreciprocal, self.native)]
        size = np.maximum(np.max(losses, axis=0), np.finfo(float).tiny)
        apart = np.abs(np.asarray(self.sums.total) - np.asarray(self.gap)) / size
        return apart if apart.ndim else float(apart)

    @property
    def allowed(self) -> float:
        """What `closure` may be: `tol`, or the round-off of the losses where that is larger."""
        return max(self.tol, float(np.finfo(np.asarray(self.start).dtype).eps))

    @property
    def closed(self) -> bool:
        """Whether the account closes, every one of them where there are many."""
        return bool(np.all(self.closure <= self.allowed))

    def __str__(self) -> str:
        if np.ndim(self.start):
            return self._means()
        lines = [
            f"{'loss at the start':<30}{float(self.start):>16.8e}",
            f"{'native learner ends at':<30}{float(self.native):>16.8e}",
        ]
        meaning = (
            "turning, senses averaged",
            "the sense that was taken",
            "another step than native",
            "other states visited",
        )
        if not self._turned:
            lines.append("  no update turned")
        for term, why in zip(TERMS, meaning, strict=True) if self._apart else ():
            lines.append(f"  {term:<12}{why:<28}{float(getattr(self.sums, term)):>+16.8e}")
        verdict = "closes" if self.closed else "DOES NOT CLOSE"
        lines.append(f"{'nonreciprocal learner ends at':<30}{float(self.nonreciprocal):>16.8e}")
        lines.append(
            f"{'gap':<30}{float(self.gap):>+16.8e}   {verdict}: residual {self.closure:.1e}, "
            f"tolerance {self.allowed:.0e}"
        )
        return "\n".join(lines)

    @property
    def _turned(self) -> bool:
        """Whether any update turned: a turn has an even part and one that depends on its sense."""
        return bool(np.any(self.sums.even) or np.any(self.sums.handedness))

    @property
    def _apart(self) -> bool:
        """Whether the learners ever parted."""
        return any(np.any(getattr(self.sums, term)) for term in TERMS)

    def _means(self) -> str:
        """Many accounts in two lines."""
        if not self._apart:
            return "no update turned, and both learners of every pair took the same path"
        means = ", ".join(
            f"{term} {np.mean(np.asarray(getattr(self.sums, term))):+.4e}" for term in TERMS
        )
        return (
            f"mean gap {np.mean(np.asarray(self.gap)):+.4e} = {means}\n"
            f"largest closure residual {np.max(self.closure):.1e}"
        )


def _means(terms: Any, names: tuple[str, ...]) -> str:
    """One line per name: the number, or the mean where there are many."""
    values = {name: np.asarray(getattr(terms, name)) for name in names}
    many = next(iter(values.values())).shape
    head = [f"means over {' x '.join(map(str, many))} updates"] if many else []
    return "\n".join(
        [*head, *(f"{name:<12}{value.mean():>+16.8e}" for name, value in values.items())]
    )


def zeros(dtype: np.dtype) -> Terms:
    """An empty account."""
    return Terms(*(jnp.zeros((), dtype=dtype) for _ in TERMS))
