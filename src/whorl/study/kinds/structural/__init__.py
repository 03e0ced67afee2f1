"""The structural study.

Response identities, ranks, rotational modes, reciprocal trajectories, and the two exact examples.
"""

from whorl.study import spec
from whorl.study.kind import Kind
from whorl.study.kinds.structural import compute, cost, tables
from whorl.study.kinds.structural.parameters import Structural

SPEC = spec.beside(__file__)
KIND = Kind(
    name="structural",
    parameters=SPEC.parameters(Structural),
    columns=SPEC.columns,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    known=SPEC.statistics,
    alone=True,
)
