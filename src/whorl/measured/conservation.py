r"""Is mass conserved in the data?

Outputs are conserved when their sum follows nothing: it is constant up to round-off, up to the
digits that were written, or up to noise that is clearly smaller than what the outputs do. Tables
and series share this definition.

In a table the velocities of a sample's outputs should sum to zero. What they sum to instead is
noise, or it is a leak: something that follows what was applied, $\mathbf{1}^\mathsf{T}y = c\cdot x$.
Without a leak, the sum is as likely to be positive as negative in every unit, so random signs
give an exact test of $c = 0$. In a series (`dependence`) a leak follows the sample before.
"""

from dataclasses import dataclass

import numpy as np

from whorl.measured.moments import Moments

DRAWS = 999
EXACT = 1e-9  # a sum below this share of the velocities is round-off
WRITTEN = 1e-3  # a smaller sum may come from the digits of the file
BLURRED = 0.3  # sums this large beside the velocities tell nothing about conservation


@dataclass(frozen=True)
class Mass:
    """Whether what the outputs gain and lose adds up."""

    share: (
        float  # size of the sums over the size of the velocities; 0 where mass is conserved exactly
    )
    # the same for what was applied: the part that is constant over the outputs, which nothing can
    # answer
    offset: float
    p: float  # of the test that the sums do not follow what was applied
    written: float = WRITTEN  # a share that the digits of the file may leave

    @property
    def exact(self) -> bool:
        """Whether the sums are zero but for round-off."""
        return self.share <= EXACT

    def leaks(self, alpha: float = 0.05) -> bool:
        """Whether the sums follow what was applied, and are more than digits that were cut off."""
        return self.share > max(WRITTEN, self.written) and self.p <= alpha

    def conserved(self, alpha: float = 0.05) -> bool:
        """Whether the sums are constant, as far as the noise lets it be seen."""
        return self.exact or (self.share < BLURRED and not self.leaks(alpha))


def mass(moments: Moments, drive: str, outputs: int, *, seed: int = 0) -> Mass:
    """Check that velocities, and what was applied, sum to zero over the outputs of each sample."""
    sums, share = moments.between("leak", drive), _share(moments, "leak", "velocity", outputs)
    values, vectors = np.linalg.eigh(moments.between(drive, drive).sum(axis=0))
    held = values > 1e-8 * values[-1]
    white = (sums @ vectors[:, held] / np.sqrt(values[held])).reshape(moments.units, -1)
    flips = 2.0 * np.random.default_rng([seed, 4]).integers(0, 2, (DRAWS + 1, moments.units)) - 1.0
    flips[0] = 1.0
    sizes = np.sum((flips @ white) ** 2, axis=-1)
    p = 1.0 if share <= EXACT else float(np.mean(sizes >= sizes[0] * (1 - 1e-9)))
    return Mass(share, _share(moments, "offset", drive, outputs), p)


def _share(moments: Moments, sums: str, part: str, outputs: int) -> float:
    constant = float(np.trace(moments.between(sums, sums).sum(axis=0))) / outputs
    rest = float(np.trace(moments.between(part, part).sum(axis=0)))
    return float(np.sqrt(constant / (constant + rest))) if constant > 0 else 0.0
