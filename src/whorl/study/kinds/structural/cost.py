"""What a structural study asks for."""

from whorl.study.kind import Work, compiling
from whorl.study.kinds.structural.parameters import Structural


def work(p: Structural) -> Work:
    """Rows of the tables."""
    depths, deep, states = len(p.depths), 9 * sum(p.depths), p.families * (p.updates + 1)
    rows = {
        "tasks": 6 * p.families,
        "weights": p.families * deep,
        "responses": 324 * p.families * depths,
        "operators": p.families * depths,
        "modes": p.families * depths * len(p.omegas),
        "trajectory_weights": states * deep,
        "trajectories": states * depths,
        "control_weights": deep,
        "control_responses": 9 * depths,
        "controls": depths,
        "curvature": 2 * len(p.steps),
    }
    return Work(rows, depths, per_row=2e-6, per_program=compiling(p.depths, 3.2, 0.75))
