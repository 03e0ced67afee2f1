"""What a budgets study may be asked for."""

from dataclasses import dataclass

from whorl.study.parameters import (
    BETAS,
    CHUNK,
    DEPTHS,
    RANK_TOL,
    SEED,
    SPREAD,
    Common,
    Fault,
    between,
    many,
    parameter,
    several,
)
from whorl.study.parameters import whole as number

MARKS = several("whole numbers from 1 to 1000000", number(1, 1_000_000)[1])
DELAYS = several("whole numbers from 1 to 1000", number(1, 1000)[1])


@dataclass(frozen=True, kw_only=True)
class Budgets(Common):
    """The parameters of a budgets study."""

    bootstrap_seed: int = parameter(SEED, "root seed of the bootstrap")
    trials: int = parameter(number(2, 100_000), "tasks, each with its own networks and schedule")
    betas: list[float] = parameter(BETAS, "imbalances: factors of the column logits")
    frozen_depths: list[int] = parameter(DEPTHS, "layers of the networks whose response is frozen")
    spread: float = parameter(SPREAD, "of the Dirichlet distribution of a structural column")
    structural_floor: float = parameter(between(1e-9, 1), "share of it that is spread evenly")
    rank_tol: float = parameter(RANK_TOL, "share of the largest eigenvalue that still counts")
    gains: list[float] = parameter(many(1e-3, 1e3), "norms of the laws")
    scale: float = parameter(between(1e-9, 1), "numerator of the step envelope")
    updates: list[int] = parameter(MARKS, "updates after which losses are read, one sample shown")
    joint_updates: list[int] = parameter(MARKS, "the same where all samples are shown")
    momentum: float = parameter(between(0, 0.999), "of heavy ball and of Nesterov's method")
    least_cosine: float = parameter(between(0, 1), "of the turns of the arm `kept`")
    robust_beta: float = parameter(between(0, 100), "imbalance of the arms that ask for robustness")
    robust_depths: list[int] = parameter(DEPTHS, "their numbers of layers")
    robust_gain: float = parameter(between(1e-3, 1e3), "norm of their laws")
    robust_updates: list[int] = parameter(MARKS, "updates after which their losses are read")
    errors: list[float] = parameter(many(1e-6, 1), "relative errors of the known response")
    delays: list[int] = parameter(DELAYS, "updates by which the known response is late")
    noises: list[float] = parameter(many(1e-9, 1), "of the residual that is read, per direction")
    flips: list[float] = parameter(many(1e-6, 1), "probabilities that the sense flips")
    wide: int = parameter(number(5, 9), "width of the arm `wide`, odd")
    resamples: int = parameter(number(1, 1_000_000), "resamples of a bootstrap")
    chunk: int = parameter(CHUNK, "learners of one compiled call")

    def together(self) -> Fault | None:
        """Lists of updates that do not grow, and a width whose directions do not pair."""
        for name in ("updates", "joint_updates", "robust_updates"):
            marks = getattr(self, name)
            if marks != sorted(marks):
                return name, f"{name} must grow", marks
        return ("wide", "wide must be odd", self.wide) if self.wide % 2 == 0 else None
