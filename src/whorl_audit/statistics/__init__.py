"""The statistics on which gates act, from the tables, in the order of their rows.

One that does not exist for a run has no entry.
"""

from collections.abc import Callable

from whorl_audit.statistics import foresight, horizon, structural, threshold
from whorl_audit.types import Expected, Parameters, Tables

STATISTICS: dict[str, Callable[[Tables, Parameters], dict[str, Expected]]] = {
    "structural": structural.statistics,
    "threshold": threshold.statistics,
    "horizon": horizon.statistics,
    "foresight": foresight.statistics,
}
