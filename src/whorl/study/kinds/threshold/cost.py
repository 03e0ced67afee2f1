"""What a threshold study asks for."""

from whorl.study.kind import Work, compiling
from whorl.study.parameters import Parameters

# bytes of one configuration, per layer, while it is compiled into one call
CONFIGURATION = 40_000


def work(p: Parameters) -> Work:
    """Rows of the tables, the bootstrap, and what a compiled call holds."""
    places = p.families * len(p.betas)
    rows = {
        "tasks": 6 * p.families,
        "weights": 9 * places * sum(p.depths),
        "configurations": places * len(p.depths),
        "draws": p.resamples,
    }
    return Work(
        rows,
        programs=len(p.depths),
        per_row=2e-5,
        per_program=compiling(p.depths, 2.6, 0.75),
        draws=p.resamples * p.families,
        memory=CONFIGURATION * places * max(p.depths),
    )
