"""What every column of every table is: role, type, equation and meaning.

Written into the Parquet schema, and read by people.

A line is `name | role | type | equation | meaning`. All quantities are pure numbers: flows are
shares of a unit mass.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from whorl.study._foresight_lines import FORESIGHT
from whorl.study._lines import (
    BETA,
    DEPTH,
    ENTRY,
    FAMILY,
    LAYER,
    PLACE,
    SCALE,
    TASKS,
    TERMS,
    TRIAL,
    VECTORS,
    WEIGHT,
)

UNIT = "1"


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    role: str  # key, drawn, computed or derived
    type: str
    equation: str
    meaning: str


STATISTICS = """
name | key | string | | name of the statistic
value | derived | float64 | | its value
"""
TEXT: dict[str, dict[str, tuple[str, ...]]] = {
    "structural": {
        "tasks": (FAMILY, TASKS),
        "weights": (FAMILY, DEPTH, LAYER, PLACE, WEIGHT),
        "responses": (
            FAMILY,
            DEPTH,
            ENTRY,
            (
                "layer_sum | computed | float64 | Eq. 13 | entry of the response, summed over layers "
                "and columns"
            ),
            "gram | computed | float64 | Eq. 12 | the same entry as J M J^T",
        ),
        "operators": (
            FAMILY,
            DEPTH,
            "selected | computed | int64 | Sec. V | sample with the largest residual",
            (
                "rank | computed | int64 | Sec. VII A | modes of the joint response above the "
                "tolerance"
            ),
            (
                "condition | computed | float64 | Sec. VII A | strongest over weakest retained mode of "
                "the joint response"
            ),
            (
                "selected_rank | computed | int64 | Sec. V | modes of the selected response above the "
                "tolerance"
            ),
            (
                "selected_condition | computed | float64 | Sec. V | its strongest over its weakest "
                "retained mode"
            ),
            (
                "factorisation | derived | float64 | Eqs. 12, 13 | relative Frobenius distance of the "
                "two routes"
            ),
            "symmetry | derived | float64 | Eq. 12 | relative Frobenius size of the skew part",
        ),
        "modes": (
            FAMILY,
            DEPTH,
            "omega | key | float64 | Eq. 19 | rate of rotation",
            (
                "real | computed | float64 | Prop. 2 | real part of the eigenvalue of the residual's "
                "linearisation"
            ),
            "imag | computed | float64 | Prop. 2 | its imaginary part, not negative",
            VECTORS,
            (
                "loss_rate | computed | float64 | Eq. 21 | rate of the selected loss as the outputs "
                "move"
            ),
            "predicted_rate | computed | float64 | Eq. 21 | -alpha times the squared residual",
            (
                "pair_residual | derived | float64 | Prop. 2 | distance of the eigenvalue from -alpha "
                "+ i omega"
            ),
            (
                "score_residual | derived | float64 | Eq. 21 | distance of the velocity from the "
                "commanded one"
            ),
            "dissipation_residual | derived | float64 | Eq. 21 | distance of the two rates",
        ),
        "trajectory_weights": (
            FAMILY,
            DEPTH,
            "update | key | int64 | | updates made",
            LAYER,
            PLACE,
            (
                "layer_sum | computed | float64 | Eq. 14 | weight of the learner that solves among the "
                "outputs"
            ),
            (
                "gauss_newton | computed | float64 | Eq. 17 | weight of the learner that solves among "
                "the parameters"
            ),
        ),
        "trajectories": (
            FAMILY,
            DEPTH,
            "update | key | int64 | | updates made",
            "loss | computed | float64 | Eq. 5 | half the squared residual, summed over samples",
            (
                "discrepancy | derived | float64 | Eq. 17 | largest difference of a weight between the "
                "two learners"
            ),
            (
                "column_residual | derived | float64 | Eq. 3 | largest distance of a column sum from "
                "one"
            ),
            "smallest | derived | float64 | Eq. 1 | smallest weight",
        ),
        "control_weights": (DEPTH, LAYER, PLACE, WEIGHT),
        "control_responses": (
            DEPTH,
            ENTRY,
            "response | computed | float64 | Eq. 13 | entry of the response to one even input",
        ),
        "controls": (
            DEPTH,
            "rank | computed | int64 | Supplement III | modes of the response above the tolerance",
            (
                "null_response | derived | float64 | Supplement III | size of the answer along the "
                "mode between the components"
            ),
        ),
        "curvature": (
            "example | key | string | Sec. VI | sign of the coefficient",
            "step | key | float64 | Eq. 24 | step",
            "coefficient | computed | float64 | Eq. 25 | analytic coefficient",
            "loss_plus | computed | float64 | Eq. 24 | loss after the step with a turn",
            "loss_minus | computed | float64 | Eq. 24 | loss after the step with the opposite turn",
            "loss_still | computed | float64 | Eq. 24 | loss after the step without a turn",
            "even_difference | derived | float64 | Eq. 24 | mean of the turns less no turn",
            "estimate | derived | float64 | Eq. 24 | even difference over the squared step",
            "relative_error | derived | float64 | Eq. 24 | of the estimate against the coefficient",
        ),
    },
    "threshold": {
        "tasks": (FAMILY, TASKS),
        "weights": (FAMILY, DEPTH, BETA, LAYER, PLACE, WEIGHT),
        "configurations": (
            FAMILY,
            DEPTH,
            BETA,
            "selected | computed | int64 | Eq. 27 | sample with the largest residual",
            (
                "displacement | computed | float64 | Eq. 25 | squared first-order displacement, all "
                "samples"
            ),
            (
                "bending | computed | float64 | Eq. 25 | second-order displacement along the residual, "
                "all samples"
            ),
            (
                "selected_displacement | computed | float64 | Eq. 27 | squared displacement of the "
                "selected sample"
            ),
            "selected_bending | computed | float64 | Eq. 27 | bending of the selected sample",
            (
                "condition | computed | float64 | Supplement IV | condition number of the selected "
                "response"
            ),
            VECTORS,
            "loss_plus | computed | float64 | Eq. 24 | mean loss after the step with a turn",
            (
                "loss_minus | computed | float64 | Eq. 24 | mean loss after the step with the opposite "
                "turn"
            ),
            "loss_still | computed | float64 | Eq. 24 | mean loss after the step without a turn",
            "back_plus | computed | float64 | Eq. 24 | the same with the step reversed: turn",
            "back_minus | computed | float64 | Eq. 24 | step reversed: opposite turn",
            "back_still | computed | float64 | Eq. 24 | step reversed: no turn",
            "coefficient | derived | float64 | Eq. 25 | the finite-step coefficient of all samples",
            "ratio | derived | float64 | Eq. 27 | the selected sample's curvature ratio",
            "favourable | derived | int64 | Eq. 25 | 1 where the coefficient is negative",
            "predicted | derived | int64 | Eq. 27 | 1 where the ratio exceeds one",
            "finite | derived | float64 | Eq. 24 | the coefficient from finite steps both ways",
            (
                "coefficient_residual | derived | float64 | Eq. 24 | relative distance of the two "
                "coefficients"
            ),
            (
                "response_residual | derived | float64 | Eq. 21 | distance of the velocity from the "
                "commanded one"
            ),
            (
                "column_residual | derived | float64 | Eq. 3 | largest distance of a column sum from "
                "one"
            ),
        ),
        "draws": (
            "draw | key | int64 | Supplement IV | number of the resample of families",
            "auc | derived | float64 | Sec. VII B | area under the ROC curve",
            "accuracy | derived | float64 | Sec. VII B | share of right predictions",
            (
                "favourable_first | derived | float64 | Sec. VII B | favourable share at the first "
                "imbalance"
            ),
            (
                "favourable_last | derived | float64 | Sec. VII B | favourable share at the last "
                "imbalance"
            ),
        ),
    },
    "horizon": {
        "tasks": (TRIAL, TASKS),
        "weights": (TRIAL, DEPTH, BETA, LAYER, PLACE, WEIGHT),
        "schedule": (
            TRIAL,
            "update | key | int64 | Appendix C | number of the update",
            "sample | drawn | int64 | Appendix C | sample that is shown",
            "turn | drawn | int64 | Appendix C | sense of the turn, +1 or -1",
        ),
        "trajectories": (
            "trajectory | key | int64 | | number of the trajectory",
            TRIAL,
            DEPTH,
            BETA,
            SCALE,
            "policy | key | string | Sec. VII C | step-matched or adaptive",
            "flip | key | int64 | Supplement V | 1 where all turns are reversed",
            "start | computed | float64 | Eq. 5 | mean loss before the first update",
            (
                "final | derived | float64 | Eq. 26 | mean loss of the nonreciprocal learner at the "
                "end"
            ),
            "native | derived | float64 | Eq. 26 | mean loss of the native learner at the end",
            "gap | derived | float64 | Eq. 26 | their difference: above zero, native ends lower",
            TERMS,
            "closure | derived | float64 | Eq. 26 | distance of the four sums from the gap",
            "opened | derived | int64 | Eq. 27 | updates at which the gate was open",
            "smallest | derived | float64 | Eq. 1 | smallest weight of the last states",
        ),
        "updates": (
            "trajectory | key | int64 | | number of the trajectory",
            "update | key | int64 | Appendix C | number of the update",
            "taken | computed | float64 | Eq. C1 | loss after the update that was made",
            "opposite | computed | float64 | Eq. C1 | loss after the opposite turn",
            "still | computed | float64 | Eq. C1 | loss without a turn, same step",
            "own | computed | float64 | Eq. C1 | loss without a turn, native step",
            "native | computed | float64 | Eq. C1 | loss of the native learner after its update",
            "size | computed | float64 | Appendix C | step of the nonreciprocal learner",
            "amount | computed | float64 | Appendix C | amount of turning",
            TERMS,
        ),
        "final_weights": (
            "trajectory | key | int64 | | number of the trajectory",
            LAYER,
            PLACE,
            (
                "nonreciprocal | computed | float64 | Eq. C1 | last weight of the nonreciprocal "
                "learner"
            ),
            "native | computed | float64 | Eq. C1 | last weight of the native learner",
        ),
        "trials": (
            TRIAL,
            "policy | key | string | Sec. VII C | step-matched or adaptive",
            "gap | derived | float64 | Eq. 26 | mean gap over conditions and flips",
            TERMS,
        ),
        "conditions": (
            DEPTH,
            BETA,
            SCALE,
            "gap_step_matched | derived | float64 | Eq. 26 | mean gap of the step-matched policy",
            "gap_adaptive | derived | float64 | Eq. 26 | mean gap of the adaptive policy",
            "gain | derived | float64 | Sec. VII C | step-matched less adaptive",
            (
                "lower | derived | float64 | Sec. VII C | lower end of the 95 % trial-bootstrap "
                "interval of the gain"
            ),
            "upper | derived | float64 | Sec. VII C | its upper end",
        ),
        "draws": (
            "draw | key | int64 | Supplement V | number of the resample of trials",
            "gap_step_matched | derived | float64 | Eq. 26 | mean gap of the step-matched policy",
            "gap_adaptive | derived | float64 | Eq. 26 | mean gap of the adaptive policy",
            "gain | derived | float64 | Sec. VII C | step-matched less adaptive",
        ),
    },
    "foresight": FORESIGHT,
}


@cache
def columns(kind: str, table: str) -> tuple[Column, ...]:
    """The columns of a table, in their order."""
    text = (STATISTICS,) if table == "statistics" else TEXT[kind][table]
    lines = [line for part in text for line in part.strip().splitlines()]
    return tuple(Column(*(cell.strip() for cell in line.split("|"))) for line in lines)


def names(kind: str) -> list[str]:
    """The tables of a kind of study."""
    return [*TEXT[kind], "statistics"]


def arrow(kind: str, name: str, table: dict[str, np.ndarray]) -> pa.Table:
    """A table with its documented columns, and what they mean in the schema."""
    wanted = columns(kind, name)
    if [column.name for column in wanted] != list(table):
        raise ValueError(
            f"table {name} must have the columns {[c.name for c in wanted]}, but it has "
            f"{list(table)}"
        )
    described = schema(kind, name)
    arrays = [
        pa.array(
            table[column.name].tolist() if column.type == "string" else table[column.name],
            field.type,
        )
        for column, field in zip(wanted, described, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=described)


def schema(kind: str, name: str) -> pa.Schema:
    """The columns of a table, each with its role, unit, equation and meaning."""
    fields = []
    for column in columns(kind, name):
        about = {
            "role": column.role,
            "unit": UNIT,
            "equation": column.equation,
            "description": column.meaning,
        }
        fields.append(
            pa.field(column.name, pa.type_for_alias(column.type), nullable=False, metadata=about)
        )
    return pa.schema(fields, metadata={"study": kind, "table": name})
