"""The threshold study.

Does the ratio of one sample predict the sign of the coefficient of all of them?
"""

from whorl.study import spec
from whorl.study.kind import Kind
from whorl.study.kinds.threshold import compute, cost, tables
from whorl.study.parameters import Parameters

SPEC = spec.beside(__file__)
KIND = Kind(
    name="threshold",
    parameters=SPEC.parameters(Parameters),
    columns=SPEC.columns,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    known=SPEC.statistics,
    alone=True,
)
