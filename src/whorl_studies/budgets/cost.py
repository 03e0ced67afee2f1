"""What a budgets study asks for."""

from whorl.study.kind import Work
from whorl_studies.budgets import arms, frozen, tables
from whorl_studies.budgets.arms import LAWS
from whorl_studies.budgets.parameters import Budgets


def work(p: Budgets) -> Work:
    """Rows of the tables, the bootstrap, and what a compiled call holds."""
    places = len(p.depths) * len(p.betas) * len(p.gains)
    marks = {"selected": len(p.updates), "joint": len(p.joint_updates)}
    frozen_ = len(frozen.populations(p)) * len(p.frozen_depths) * p.trials
    both = 2 * frozen_
    learned = sum(len(arms.main(one)) * places * marks[one] for one in LAWS)
    equal = sum(len(LAWS[one]) * places * marks[one] for one in LAWS)
    compared = sum(
        len(tables.rivals(one, law)) * places * marks[one] for one in LAWS for law in LAWS[one]
    )
    troubled = {
        one: (len(tables.robust_depths(p, one)) * len(p.robust_updates), arms.troubled(p, one))
        for one in tables.ROBUST
    }
    rows = {
        "tasks": 6 * p.trials,
        "spectra": 8 * frozen_,
        "bounds": both,
        "frozen": len(frozen.LAWS) * both,
        "learners": learned * p.trials,
        "rivals": len(tables.EQUAL) * equal * p.trials,
        "troubled": sum(many * len(every) for many, every in troubled.values()) * p.trials,
        "advantages": compared,
        "onsets": places * sum(len(laws) for laws in LAWS.values()),
        "robustness": sum(
            many * sum(arm.name != "direct" for arm in every) for many, every in troubled.values()
        ),
    }
    last = max(p.updates[-1], p.joint_updates[-1], p.robust_updates[-1])
    ends = {"selected": p.updates[-1], "joint": p.joint_updates[-1]}
    return Work(
        rows,
        foreseen=sum(len(arms.main(one)) * places * p.trials * ends[one] for one in LAWS),
        programs=len(arms.stages(p)),
        per_row=2e-5 + 1e-7 * last,
        per_program=15.0,
        draws=p.resamples * p.trials,
        memory=40 * p.chunk * last + 2000 * p.trials * p.updates[-1] // 100,
    )
