"""The threshold study.

Does the ratio of one sample predict the sign of the coefficient of all of them?
"""

from whorl.study.kind import Kind
from whorl.study.kinds.threshold import compute, cost, tables
from whorl.study.kinds.threshold.columns import COLUMNS
from whorl.study.kinds.threshold.parameters import Threshold

KIND = Kind(
    name="threshold",
    parameters=Threshold,
    columns=COLUMNS,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    alone=True,
)
