"""Results of runs, with the same names for one, two or many learners.

| name | `Run`, one learner | `Pair`, a coupled pair | `Ensemble`, many pairs |
|---|---|---|---|
| `start` | loss before the first update | the same, common to both | one per pair |
| `final` | loss at the end | two: nonreciprocal, native | two rows, one number per pair |
| `losses` | loss after every update | two such rows | two such tables, one row per pair |
| `updates` | | what happened at every update | the same, one row per pair |
| `ledger`, `gap`, `closure` | | where the gap came from | one number per pair |
| `made`, `scheduled`, `completed`, `status` | how it ended | the same | one per pair |

Losses are half the squared residual, mean over samples. What belongs to single updates is None
unless `record=True` asked for it.
"""

from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int

from whorl import _check
from whorl._show import Shown, plural
from whorl.learning.ledger import Outcome, Terms

Pairs = Float[Array, "*updates"] | Float[np.ndarray, "*updates"]


class Result(Shown, eqx.Module):
    """How a run ended.

    Attributes:
        made: Updates made before the end, or before a learner would have left the interior. One
            number per pair in an ensemble.
        scheduled: Updates that were asked for.
        stalled: Whether it stopped because no step of a pass over the samples moved anything.

    Examples:
        >>> run = wh.learn(net, x, y, rule=wh.exponentiated_gradient(), scale=0.2, epochs=2, seed=0)
        >>> isinstance(run, wh.Result), run.completed, run.made == run.scheduled
        (True, True, True)
    """

    @property
    def completed(self: Any) -> Any:
        """Whether every scheduled update was made; one answer per pair in an ensemble."""
        return self.made == self.scheduled

    @property
    def status(self: Any) -> str:
        """How the run ended, in words."""
        _check.need_known("made", "ask for the status outside", self.made)
        made = np.asarray(self.made)
        if made.ndim:
            return (
                f"{int((made == self.scheduled).sum())} of {plural(made.size, 'run')} completed"
                f" {plural(self.scheduled, 'update')}"
            )
        if int(made) == self.scheduled:
            return f"completed {plural(int(made), 'update')}"
        if bool(self.stalled):
            return (
                f"stopped at update {int(made)}: the step fell below the round-off of the longest"
                " step, and no parameter that is not near zero moves any more"
            )
        return f"stopped before update {int(made)}: a learner would have left the interior there"


class Info(Shown, eqx.Module):
    """The record of every update of a coupled pair, or of many pairs.

    Attributes:
        terms: The four terms of the ledger.
        outcome: Losses after what was done and after what was not, with step and amount.
        choice: Which action a policy that picks from a list took; 0 or None for other policies.
        own_step: The native step at the nonreciprocal state; None in an ensemble.
        native_step: The native learner's step at its own state; None in an ensemble.
        ratio: The local ratio chi of Eq. 27; None in an ensemble.

    Examples:
        >>> pair = wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)
        >>> pair.updates.step.shape, pair.updates.losses[0].shape
        ((12,), (12,))
    """

    terms: Terms
    outcome: Outcome
    choice: Int[Array, "*updates"] | Int[np.ndarray, "*updates"] | None
    own_step: Float[Array, "*updates"] | None = None
    native_step: Float[Array, "*updates"] | None = None
    ratio: Float[Array, "*updates"] | None = None

    @property
    def losses(self) -> tuple[Pairs, Pairs]:
        """Losses of the nonreciprocal and of the native learner after the update."""
        return self.outcome.taken, self.outcome.native

    @property
    def step(self) -> Pairs:
        """The step of the nonreciprocal learner, nu."""
        return self.outcome.step

    @property
    def amount(self) -> Pairs:
        """How much it turned, in the scheduled sense; below zero, against it."""
        return self.outcome.amount

    def __str__(self) -> str:
        amount = np.asarray(self.amount)
        turned = f"{int(np.count_nonzero(amount))} of {plural(amount.size, 'update')} turned"
        return f"{turned}; steps from {np.min(self.step):.3g} to {np.max(self.step):.3g}"


class Coupled(Result):
    """What a coupled pair and many of them share: a `ledger`, perhaps `updates`, and their names."""

    @property
    def start(self: Any) -> Any:
        """The common loss before the first update."""
        return self.ledger.start

    @property
    def final(self: Any) -> tuple[Any, Any]:
        """The losses at the end: nonreciprocal, native."""
        return self.ledger.nonreciprocal, self.ledger.native

    @property
    def losses(self: Any) -> tuple[Any, Any] | None:
        """The losses after every update: nonreciprocal, native."""
        return None if self.updates is None else self.updates.losses

    @property
    def gap(self: Any) -> Any:
        """Final loss of the nonreciprocal learner less that of the native one.

        Above zero, native ends lower.
        """
        return self.ledger.gap

    @property
    def closure(self: Any) -> Any:
        """How far the ledger is from the gap, relative to the largest loss involved."""
        return self.ledger.closure

    def __str__(self: Any) -> str:
        return f"{self.status}\n{self.ledger}"
