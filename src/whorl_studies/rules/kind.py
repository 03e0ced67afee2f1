"""The study of rules.

Which of the rules that train circuits follow a gradient, which bend, and which turn?
"""

from whorl.study.kind import Kind
from whorl_studies.rules import compute, cost, tables
from whorl_studies.rules.columns import COLUMNS
from whorl_studies.rules.parameters import Rules

KIND = Kind(
    name="rules",
    parameters=Rules,
    columns=COLUMNS,
    stages=compute.stages,
    compute=compute.compute,
    tables=tables.tables,
    statistics=tables.statistics,
    work=cost.work,
    alone=True,
)
