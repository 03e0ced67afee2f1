"""What a structural study may be asked for."""

from dataclasses import dataclass

from whorl.ground.rules import LEAK, RANK_TOL, Limit, between, finite, many, whole
from whorl.study.parameters import Common, Fault, parameter

STEEPEST = 5  # steps, in leaks: a residual out of reach is amplified by step / leak
# None so small that round-off decides what it becomes.
COMPOSITION: Limit = (
    "three numbers of at least 0.001 that sum to 1",
    lambda value: (
        isinstance(value, list)
        and len(value) == 3
        and all(finite(v) and v >= 1e-3 for v in value)
        and abs(sum(value) - 1) < 1e-12
    ),
)


@dataclass(frozen=True, kw_only=True)
class Structural(Common):
    """The parameters of a structural study."""

    # columns at a vertex, or all alike, leave trajectories to round-off
    floor: float = parameter(between(0.01, 0.9), "share of a column that is spread evenly")
    families: int = parameter(whole(1, 100_000), "tasks, each with its own networks")
    column_concentration: float = parameter(between(0.1, 1e3), "Dirichlet, of the columns")
    alpha: float = parameter(between(0.01, 100), "rate of repair")
    omegas: list[float] = parameter(many(0, 100), "rates of rotation")
    updates: int = parameter(whole(1, 10_000), "reciprocal updates of a trajectory")
    # 1 would repair the residual at once were it not for the leak
    step: float = parameter(between(1e-6, 1), "step of a reciprocal update")
    leak: float = parameter(LEAK, "of the leaky law")
    rank_tol: float = parameter(RANK_TOL, "a mode counts above this share of the strongest")
    steps: list[float] = parameter(many(1e-6, 1, least=2), "steps of the exact examples")
    negative_start: list[float] = parameter(COMPOSITION, "column of the example with Q < 0")
    negative_target: list[float] = parameter(COMPOSITION, "its target")
    positive_start: list[float] = parameter(COMPOSITION, "column of the example with Q > 0")
    positive_target: list[float] = parameter(COMPOSITION, "its target")

    def together(self) -> Fault | None:
        """A step is bounded by the leak."""
        most = STEEPEST * self.leak
        if self.step > most:
            return "step", f"step must be at most {STEEPEST} times leak, {most:g}", self.step
        return None
