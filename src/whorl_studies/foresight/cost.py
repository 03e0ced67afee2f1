"""What a foresight study asks for."""

from whorl.study.kind import Work
from whorl.study.parameters import Coupled
from whorl_studies.foresight.arms import MAIN, Arm, arms
from whorl_studies.foresight.comparators import ACTIONS, LEARNERS


def work(p: Coupled) -> Work:
    """Rows of the tables, updates in foresight, the bootstrap, and what a compiled call holds."""
    places, horizons = len(p.betas) * len(p.scales), len(p.horizons)
    conditions = len(p.depths) * places
    compared = len(LEARNERS) * horizons * conditions
    every = [(arm, len(arm.horizons) * len(arm.depths)) for arm in arms(p)]
    pairs = [(arm, calls * places * arm.trials) for arm, calls in every]
    rows = {
        "tasks": 6 * p.trials,
        "weights": 9 * p.trials * len(p.betas) * sum(dict.fromkeys([*p.depths, p.deep])),
        "schedule": p.trials * p.updates,
        "readings": ACTIONS * p.trials * p.updates,
        "trajectories": sum(count for _, count in pairs),
        "choices": sum(count * _updates(p, arm) for arm, count in pairs),
        "conditions": sum(calls * places for _, calls in every),
        "advantages": (len(MAIN) - 1) * horizons * conditions,
        "payoff": len(MAIN) * conditions,
        "costs": horizons,
        "comparators": compared * p.trials,
        "comparisons": compared,
    }
    return Work(
        rows,
        programs=sum(calls for _, calls in every) + len(LEARNERS) * len(p.depths),
        per_row=2e-6,
        per_program=2.0,
        draws=p.resamples * p.trials,
        foreseen=sum(places * _foreseen(p, arm) for arm in arms(p)),
        memory=p.chunk_bytes,
    )


def _updates(p: Coupled, arm: Arm) -> int:
    """Updates of a trajectory, whose task has as many vertices as the width and three mixtures."""
    return p.epochs * (arm.width + 3)


def _foreseen(p: Coupled, arm: Arm) -> int:
    """Updates that an arm foresees in one condition, every action at a time."""
    updates = _updates(p, arm)
    ahead = sum(min(updates if one < 0 else one + 1, updates) for one in arm.horizons)
    return ACTIONS * len(arm.depths) * arm.trials * updates * ahead
