"""What a study of rules asks for."""

from whorl.study.kind import Work
from whorl.study.parameters import Parameters

CIRCUIT = 4000  # bytes of one circuit, per node squared, while it is compiled into one call


def work(p: Parameters) -> Work:
    """Rows of the tables, and what a compiled call holds."""
    circuits, places = p.circuits * len(p.sizes), p.families * len(p.betas)
    networks = places * len(p.depths)
    rows = {
        "edges": p.circuits * sum(2 * size + 1 for size in p.sizes),
        "loops": 9 * circuits,
        "nudges": 2 * len(p.nudges) * circuits,
        "circuits": circuits,
        "weights": 9 * places * sum(p.depths),
        "network_loops": 9 * networks,
        "networks": networks,
    }
    return Work(
        rows,
        programs=len(p.sizes) + len(p.depths),
        per_row=2e-5,
        per_program=20.0,
        memory=CIRCUIT * p.circuits * max(p.sizes) ** 2,
    )
