"""The horizon study.

Coupled pairs under two policies, their accounts, and what the gap to the native learner is made of.
"""

from whorl.study.kind import Kind
from whorl.study.kinds.horizon import compute, cost, tables
from whorl.study.kinds.horizon.columns import COLUMNS
from whorl.study.parameters import Coupled

KIND = Kind(
    name="horizon",
    parameters=Coupled,
    columns=COLUMNS,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    many=compute.many,
)
