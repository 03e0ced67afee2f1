"""The study of rules.

Which of the rules that train circuits follow a gradient, which bend, and which turn?
"""

from whorl.study import spec
from whorl.study.kind import Kind
from whorl.study.parameters import Parameters
from whorl_studies.rules import compute, cost, tables

SPEC = spec.beside(__file__)
KIND = Kind(
    name="rules",
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
