"""The foresight study.

Policies that look ahead, controls with other actions, and learners that spend the compute
otherwise. One stage for every arm, horizon and depth, and one for every comparator and depth.
"""

from whorl.study import spec
from whorl.study.kind import Arrays, Kind
from whorl.study.parameters import Coupled
from whorl_studies.foresight import arms, comparators, cost, tables
from whorl_studies.foresight.arms import Call
from whorl_studies.foresight.comparators import LEARNERS, Compared


def _stages(p: Coupled) -> list[Call | Compared]:
    compared = [Compared(learner, depth) for learner in LEARNERS for depth in p.depths]
    return [*arms.calls(p), *compared]


def _compute(p: Coupled, stage: Call | Compared) -> Arrays:
    return arms.compute(p, stage) if isinstance(stage, Call) else comparators.compute(p, stage)


SPEC = spec.beside(__file__)
KIND = Kind(
    name="foresight",
    parameters=SPEC.parameters(Coupled),
    columns=SPEC.columns,
    stages=_stages,
    compute=_compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    known=SPEC.statistics,
)
