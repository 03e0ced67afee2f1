"""Columns that are formulas of other stored columns, repeated in the order of operations that the
formula gives.

The result must be the same number, except where only the order of a long sum is open: there it must
agree to 1e-12 of the terms.
"""

from whorl_audit.derived import foresight, horizon, structural, threshold
from whorl_audit.types import Formulas

DERIVED: dict[str, Formulas] = {
    "structural": structural.DERIVED,
    "threshold": threshold.DERIVED,
    "horizon": horizon.DERIVED,
    "foresight": foresight.DERIVED,
}
