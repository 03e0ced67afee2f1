"""What a horizon study asks for."""

from whorl.study.kind import Work
from whorl.study.parameters import Coupled

# Seconds of one program, and how they grow with the depth and its square: XLA compiles every layer
# for itself. Processor seconds of whole studies at depths 2, 8 and 16 were 1.5, 4.8 and 10.4 for
# each program; the constant includes what else a program costs, such as its share of the audit.
COMPILING = (6.8, 0.45, 0.011)


def work(p: Coupled) -> Work:
    """Rows of the tables, the bootstrap, and what a compiled call holds."""
    depths, deep = len(p.depths), 9 * sum(p.depths)
    once, linear, square = COMPILING
    each = [once + linear * depth + square * depth**2 for depth in p.depths]
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
        per_program=sum(each) / depths,
        draws=p.resamples * p.trials,
        memory=p.chunk_bytes,
    )
