"""The horizon study.

Coupled pairs under two policies, their accounts, and what the gap to the native learner is made of.
"""

from whorl.study import spec
from whorl.study.kind import Kind
from whorl.study.kinds.horizon import compute, cost, tables
from whorl.study.parameters import Coupled

SPEC = spec.beside(__file__)
KIND = Kind(
    name="horizon",
    parameters=SPEC.parameters(Coupled),
    columns=SPEC.columns,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    known=SPEC.statistics,
    many=compute.many,
)
