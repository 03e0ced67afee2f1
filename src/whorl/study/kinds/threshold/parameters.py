"""What a threshold study may be asked for."""

from dataclasses import dataclass

from whorl.ground.rules import BETAS, RANK_TOL, SEED, between, whole
from whorl.study.parameters import Common, parameter


@dataclass(frozen=True, kw_only=True)
class Threshold(Common):
    """The parameters of a threshold study."""

    bootstrap_seed: int = parameter(SEED, "root seed of the bootstrap")
    families: int = parameter(whole(2, 100_000), "tasks, each with its own networks")
    betas: list[float] = parameter(BETAS, "imbalances: factors of the column logits")
    finite_step: float = parameter(between(1e-8, 1), "step of the measured coefficient")
    resamples: int = parameter(whole(1, 1_000_000), "resamples of the bootstrap")
    rank_tol: float = parameter(RANK_TOL, "a mode counts above this share of the strongest")
