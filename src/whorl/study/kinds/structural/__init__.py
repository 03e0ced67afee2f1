"""The structural study.

Response identities, ranks, rotational modes, reciprocal trajectories, and the two exact examples.
"""

from whorl.study.kind import Kind
from whorl.study.kinds.structural import compute, cost, tables
from whorl.study.kinds.structural.columns import COLUMNS
from whorl.study.kinds.structural.parameters import Structural

KIND = Kind(
    name="structural",
    parameters=Structural,
    columns=COLUMNS,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    alone=True,
)
