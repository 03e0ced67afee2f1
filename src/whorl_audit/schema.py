"""Every table and column that a run folder may hold, as data: names, order, types and roles.

A line lists the columns of a role in order. A star marks a whole number, a dollar sign a word; all
else is double precision.
"""

from dataclasses import dataclass
from sys import float_info
from typing import Any, TypeGuard

MOST = 1_000_000  # epochs and resamples
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
        " | computed selected* displacement bending selected_displacement selected_bending "
        f"condition {_MOTION}"
        " loss_plus loss_minus loss_still back_plus back_minus back_still"
        " | derived coefficient ratio favourable* predicted* finite coefficient_residual "
        "response_residual column_residual",
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
        " | computed start final native even handedness step drift smallest | derived gap closure "
        "departed*",
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


# What a value may be, in the order in which a rule is looked for: by kind and name, then by name.
# Two numbers are the ends of a range.
_COUNTS = {
    "seed": (0, 2**63 - 1),
    "bootstrap_seed": (0, 2**63 - 1),
    "families": (2, 100_000),
    "structural families": (1, 100_000),
    "trials": (2, 100_000),
    "wide_trials": (2, 100_000),
    "width": (3, 3),
    "mixtures": (3, 3),
    "updates": (1, 10_000),
    "epochs": (1, MOST),
    "resamples": (1, MOST),
    "chunk": (64, 65_536),
    "deep": (1, 64),
    "wide": (4, 9),
}
_NUMBERS = {
    "concentration": (1e-3, 1e6),
    "column_concentration": (0.1, 1e3),
    "floor": (1e-9, 1.0),
    "structural floor": (0.01, 0.9),
    "alpha": (1.0, 1.0),
    "structural alpha": (1e-2, 1e2),
    "omega": (1e-3, 1e3),
    "step": (1e-6, 1.0),
    "leak": (1e-6, 1e6),
    "rank_tol": (1e-24, 0.5),
    "finite_step": (1e-8, 1.0),
}
_LISTS = {  # of different numbers, at least as many as the third number says
    "betas": (0.0, 100.0, 1),
    "scales": (1e-9, 1.0, 1),
    "omegas": (1e-3, 1e3, 1),
    "structural omegas": (0.0, 1e2, 1),
    "noises": (1e-6, 10.0, 1),
    "steps": (1e-6, 1.0, 2),
}
_WHOLE_LISTS = {"depths": (1, 64), "horizons": (-1, 1_000_000), "robust_horizons": (-1, 1_000_000)}
_FRACTIONS = ("halves", "quarters")
LONGEST = 1000  # entries of a list


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


TABLES = {
    kind: {table: _parse(line) for table, line in tables.items()}
    for kind, tables in _TABLES.items()
}
PARAMETERS = {kind: tuple(line.split()) for kind, line in _PARAMETERS.items()}


def parameter_fault(kind: str, name: str, value: object) -> str | None:
    """The rule that the value of a parameter breaks, if it breaks one."""

    def of(rules: dict[str, Any]) -> Any:
        return rules.get(f"{kind} {name}") or rules.get(name)

    if ends := of(_COUNTS):
        good = (
            _whole(value) and ends[0] <= value <= ends[1] and (name != "chunk" or value % 64 == 0)
        )
        rule = f"be a whole number from {ends[0]} to {ends[1]}{', a multiple of 64' * (name == 'chunk')}"
        rule = rule if ends[0] < ends[1] else f"be {ends[0]}"
    elif ends := of(_NUMBERS):
        good, rule = (
            _real(value) and ends[0] <= value <= ends[1],
            f"be a number from {ends[0]:g} to {ends[1]:g}",
        )
    elif ends := of(_WHOLE_LISTS):
        good = _different(value) and all(_whole(one) and ends[0] <= one <= ends[1] for one in value)
        rule = f"be a list of different whole numbers from {ends[0]} to {ends[1]}"
    elif ends := of(_LISTS):
        good = (
            _different(value)
            and len(value) >= ends[2]
            and all(ends[0] <= one <= ends[1] for one in value)
        )
        rule = f"be a list of {f'at least {ends[2]} ' * (ends[2] > 1)}different numbers from {ends[0]:g} to {ends[1]:g}"
    elif name in _FRACTIONS:
        good = (
            _different(value)
            and len(value) == 3
            and value[0] == 1
            and all(0 <= one <= 1 for one in value)
        )
        rule = "be three different numbers from 0 to 1 of which the first is 1"
    else:  # a composition
        good, rule = _composition(value), "be three numbers of at least 0.001 that sum to 1"
    return None if good else rule


def joint_fault(kind: str, values: dict[str, Any]) -> str | None:
    """The sentence where values that are good one by one do not fit together."""
    if kind == "structural" and values["step"] > 5 * values["leak"]:
        return f"step must be at most 5 times leak, but they are {values['step']:g} and {values['leak']:g}"
    return None


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _real(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= float_info.max
    )


def _composition(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(_real(one) and one >= 1e-3 for one in value)
        and abs(sum(value) - 1) < 1e-12
    )


def _different(value: object) -> TypeGuard[list[float]]:
    return (
        isinstance(value, list)
        and 0 < len(value) <= LONGEST
        and all(map(_real, value))
        and len(set(value)) == len(value)
    )
