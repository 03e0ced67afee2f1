"""The budgets study: what rotation can buy.

Frozen responses under laws of norm one, learners under laws of equal gain, and what troubles them.
One stage for every population and depth, and one for arms of a setting that share a program.
"""

from whorl.study import spec
from whorl.study.kind import Arrays, Kind
from whorl_studies.budgets import arms, cost, frozen, tables
from whorl_studies.budgets.arms import Stage
from whorl_studies.budgets.frozen import Frozen
from whorl_studies.budgets.parameters import Budgets


def _stages(p: Budgets) -> list[Stage | Frozen]:
    standing = [Frozen(name, depth) for name in frozen.populations(p) for depth in p.frozen_depths]
    return [*arms.stages(p), *standing]


def _compute(p: Budgets, stage: Stage | Frozen) -> Arrays:
    return arms.compute(p, stage) if isinstance(stage, Stage) else frozen.compute(p, stage)


SPEC = spec.beside(__file__)
KIND = Kind(
    name="budgets",
    parameters=SPEC.parameters(Budgets),
    columns=SPEC.columns,
    stages=_stages,
    compute=_compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    known=SPEC.statistics,
)
