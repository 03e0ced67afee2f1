"""The foresight study.

Policies that look ahead, controls with other actions, and learners that spend the compute
otherwise. One stage for every arm, horizon and depth, and one for every comparator and depth.
"""

from whorl.study.kind import Arrays, Kind
from whorl_studies.foresight import arms, comparators, cost, tables
from whorl_studies.foresight.arms import Call
from whorl_studies.foresight.columns import COLUMNS
from whorl_studies.foresight.comparators import LEARNERS, Compared
from whorl_studies.foresight.parameters import Foresight


def _stages(p: Foresight) -> list[Call | Compared]:
    compared = [Compared(learner, depth) for learner in LEARNERS for depth in p.depths]
    return [*arms.calls(p), *compared]


def _compute(p: Foresight, stage: Call | Compared) -> Arrays:
    return arms.compute(p, stage) if isinstance(stage, Call) else comparators.compute(p, stage)


KIND = Kind(
    name="foresight",
    parameters=Foresight,
    columns=COLUMNS,
    stages=_stages,
    compute=_compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
)
