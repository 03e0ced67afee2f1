"""What a horizon study asks for."""

from whorl.study.kind import Work, compiling
from whorl.study.parameters import Coupled


def work(p: Coupled) -> Work:
    """Rows of the tables, the bootstrap, and what a compiled call holds."""
    depths, deep = len(p.depths), 9 * sum(p.depths)
    places = len(p.betas) * len(p.scales)
    pairs = 4 * p.trials * places
    rows = {
        "tasks": 6 * p.trials,
        "weights": p.trials * len(p.betas) * deep,
        "schedule": p.trials * p.updates,
        "trajectories": pairs * depths,
        "updates": pairs * depths * p.updates,
        "final_weights": pairs * deep,
        "trials": 2 * p.trials,
        "conditions": depths * places,
        "draws": p.resamples,
    }
    return Work(
        rows,
        programs=2 * depths * len(p.scales),
        per_row=2e-6,
        per_program=compiling(p.depths, 7.0, 0.35, 0.018),
        draws=p.resamples * p.trials,
        memory=p.chunk_bytes,
    )
