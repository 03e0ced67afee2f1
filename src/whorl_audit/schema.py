"""Every table and column that a run folder may hold, as data: names, order, types and roles.

A line lists the columns of a role in order. A star marks a whole number, a dollar sign a word; all else is double precision.
"""

from dataclasses import dataclass
from sys import float_info
from typing import TypeGuard

MOST = 1_000_000  # resamples: no table has a row for each of them in every kind
WHOLE, REAL, WORD = "int64", "double", "string"

_TASK = "drawn x_0 x_1 x_2 y_0 y_1 y_2"
_MOTION = "velocity_0 velocity_1 velocity_2 commanded_0 commanded_1 commanded_2"

_TABLES = {
    "structural": {
        "tasks": f"key family* sample* | {_TASK}",
        "weights": "key family* depth* layer* row* column* | drawn weight",
        "responses": "key family* depth* row* column* | computed layer_sum gram",
        "operators": "key family* depth* | computed selected* rank* condition selected_rank* selected_condition"
        " | derived factorisation symmetry",
        "modes": f"key family* depth* omega | computed real imag {_MOTION} loss_rate predicted_rate"
        " | derived pair_residual score_residual dissipation_residual",
        "trajectory_weights": "key family* depth* update* layer* row* column* | computed layer_sum gauss_newton",
        "trajectories": "key family* depth* update* | computed loss | derived discrepancy column_residual smallest",
        "control_weights": "key depth* layer* row* column* | drawn weight",
        "control_responses": "key depth* row* column* | computed response",
        "controls": "key depth* | computed rank* | derived null_response",
        "curvature": "key example$ step | computed coefficient loss_plus loss_minus loss_still"
        " | derived even_difference estimate relative_error",
        "statistics": "key name$ | derived value",
    },
    "threshold": {
        "tasks": f"key family* sample* | {_TASK}",
        "weights": "key family* depth* beta layer* row* column* | drawn weight",
        "configurations": "key family* depth* beta"
        f" | computed selected* displacement bending selected_displacement selected_bending condition {_MOTION}"
        " loss_plus loss_minus loss_still back_plus back_minus back_still"
        " | derived coefficient ratio favourable* predicted* finite coefficient_residual response_residual column_residual",
        "draws": "key draw* | derived auc accuracy favourable_first favourable_last",
        "statistics": "key name$ | derived value",
    },
    "horizon": {
        "tasks": f"key trial* sample* | {_TASK}",
        "weights": "key trial* depth* beta layer* row* column* | drawn weight",
        "schedule": "key trial* update* | drawn sample* turn*",
        "trajectories": "key trajectory* trial* depth* beta scale policy$ flip* | computed start"
        " | derived final native gap even handedness step drift closure opened* smallest",
        "updates": "key trajectory* update* | computed taken opposite still own native size amount | derived even handedness step drift",
        "final_weights": "key trajectory* layer* row* column* | computed nonreciprocal native",
        "trials": "key trial* policy$ | derived gap even handedness step drift",
        "conditions": "key depth* beta scale | derived gap_step_matched gap_adaptive gain lower upper",
        "draws": "key draw* | derived gap_step_matched gap_adaptive gain",
        "statistics": "key name$ | derived value",
    },
    "foresight": {
        "tasks": f"key trial* sample* | {_TASK}",
        "weights": "key trial* depth* beta layer* row* column* | drawn weight",
        "schedule": "key trial* update* | drawn sample* foreseen* angle",
        "readings": "key trial* update* action* | drawn error",
        "trajectories": "key trajectory* arm$ horizon* width* depth* beta scale trial*"
        " | computed start final native even handedness step drift smallest | derived gap closure departed*",
        "choices": "key trajectory* update* | computed action*",
        "conditions": "key arm$ horizon* width* depth* beta scale"
        " | derived native gap lower upper pays* behind* departed even handedness step drift",
        "advantages": "key control$ horizon* depth* beta scale | derived advantage lower upper claimed*",
        "payoff": "key arm$ depth* beta scale | derived first* onward*",
        "costs": "key horizon* | derived foresight* multiple*",
        "comparators": "key learner$ horizon* depth* beta scale trial* | computed final",
        "comparisons": "key learner$ horizon* depth* beta scale | derived gap advantage lower upper share",
        "statistics": "key name$ | derived value",
    },
}

_PARAMETERS = {
    "structural": "seed families depths width mixtures concentration column_concentration floor alpha omegas updates step leak rank_tol"
    " steps negative_start negative_target positive_start positive_target",
    "threshold": "seed bootstrap_seed families depths width mixtures betas concentration floor finite_step resamples rank_tol",
    "horizon": "seed bootstrap_seed trials depths width mixtures betas scales concentration floor epochs leak alpha omega resamples chunk",
    "foresight": "seed bootstrap_seed trials depths width mixtures betas scales concentration floor epochs leak alpha omega horizons halves"
    " quarters robust_horizons noises omegas deep wide wide_trials resamples chunk",
}


_WHOLE = {
    "seed",
    "bootstrap_seed",
    "families",
    "trials",
    "width",
    "mixtures",
    "updates",
    "epochs",
    "resamples",
    "chunk",
    "deep",
    "wide",
    "wide_trials",
}
_LISTS = {
    "betas",
    "scales",
    "omegas",
    "halves",
    "quarters",
    "noises",
    "horizons",
    "robust_horizons",
    "steps",
    "negative_start",
    "negative_target",
    "positive_start",
    "positive_target",
}


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, its role and its type."""

    name: str
    role: str
    type: str


def _parse(line: str) -> tuple[Column, ...]:
    columns = []
    for part in line.split("|"):
        role, *names = part.split()
        for name in names:
            kind = WHOLE if name.endswith("*") else WORD if name.endswith("$") else REAL
            columns.append(Column(name.rstrip("*$"), role, kind))
    return tuple(columns)


TABLES = {kind: {table: _parse(line) for table, line in tables.items()} for kind, tables in _TABLES.items()}
PARAMETERS = {kind: tuple(line.split()) for kind, line in _PARAMETERS.items()}


def parameter_fault(name: str, value: object) -> str | None:
    """The rule that the value of a parameter breaks, if it breaks one."""
    if name == "resamples":
        return None if _whole(value) and value <= MOST else f"be a whole number of at most {MOST}"
    if name in _WHOLE:
        return None if _whole(value) else "be a whole number"
    if name == "depths":
        return (
            None
            if isinstance(value, list) and value and all(_whole(one) and one > 0 for one in value)
            else "be a list of positive whole numbers"
        )
    if name in _LISTS:
        return None if isinstance(value, list) and value and all(_real(one) for one in value) else "be a list of numbers"
    return None if _real(value) else "be a number"


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max
