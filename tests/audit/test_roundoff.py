"""What is left of identities is judged by what is left of ours.

A residual that was made smaller or larger inside a tolerance is found.
"""

import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import whorl_audit
from audit import forge
from study.small import small
from whorl.study import run as study_run
from whorl_audit import kinds, values, verdict
from whorl_audit.types import Tables


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    return forge.write_run(tmp_path_factory.mktemp("roundoff") / "run")


def forged(root, kind, change):
    """The failures of a study whose computed columns were changed, and all that follows from them
    made anew.
    """
    tables = forge.make_tables(kind, forge.PARAMETERS[kind])
    change(tables)
    for name, table in forge.rederive(kind, forge.PARAMETERS[kind], tables).items():
        pq.write_table(
            forge.to_arrow(kind, name, table), root / kind / "tables" / f"{name}.parquet"
        )
    forge.judge(root / kind, kind)
    forge.write_figure(
        root / kind / "figures" / kind,
        {"tasks": forge.sha256((root / kind / "tables" / "tasks.parquet").read_bytes())},
    )
    forge.seal(root)
    return [finding.claim for finding in whorl_audit.audit(root).failures]


def same(table, one, other):
    def change(tables):
        tables[table][one] = tables[table][other].copy()

    return change


def apart(table, column, size):
    def change(tables):
        values = tables[table][column]
        tables[table][column] = values * (1 + size * (-1.0) ** np.arange(len(values)))

    return change


def commanded(table):
    def change(tables):
        for k in range(3):
            tables[table][f"velocity_{k}"] = tables[table][f"commanded_{k}"].copy()

    return change


def gridded(tables):
    """Losses with so few digits that every difference of them is exact."""
    for table, names in (
        ("updates", ("taken", "opposite", "still", "own", "native")),
        ("trajectories", ("start",)),
    ):
        for name in names:
            tables[table][name] = np.round(tables[table][name] * 2.0**46) / 2.0**46


CHANGES = {
    "factorisation.max to nothing": ("structural", same("responses", "gram", "layer_sum")),
    "factorisation.max to 4e-12": ("structural", apart("responses", "gram", 4e-12)),
    "symmetry.max to 4e-12": ("structural", apart("responses", "layer_sum", 4e-12)),
    "discrepancy.max to nothing": (
        "structural",
        same("trajectory_weights", "gauss_newton", "layer_sum"),
    ),
    "discrepancy.max to 4e-12": ("structural", apart("trajectory_weights", "gauss_newton", 4e-12)),
    "column_residual.max to 4e-12": ("structural", apart("trajectory_weights", "layer_sum", 4e-12)),
    "score_residual.max to nothing": ("structural", commanded("modes")),
    "dissipation_residual.max to nothing": (
        "structural",
        same("modes", "loss_rate", "predicted_rate"),
    ),
    "response_residual.max to nothing": ("threshold", commanded("configurations")),
    "response_residual.max to 4e-12": ("threshold", apart("configurations", "velocity_1", 4e-12)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_residual_that_was_changed_inside_the_tolerances_is_found(sound, tmp_path, name):
    kind, change = CHANGES[name]
    root = shutil.copytree(sound, tmp_path / "run")
    assert f"statistic {name.partition(' ')[0]} is as large as round-off is" in forged(
        root, kind, change
    )


def test_accounts_that_close_too_well_are_found():
    p, kind = forge.PARAMETERS["horizon"] | {"epochs": 12}, kinds.find("horizon")
    tables = forge.make_tables("horizon", p)
    mine = values.own(kind, p, tables)
    assert [
        finding.claim for finding in values.roundoff(kind, p, tables, mine) if not finding.passed
    ] == []
    gridded(tables)
    tables = forge.rederive("horizon", p, tables)
    expected = values.statistics(kind, p, tables)
    assert all(finding.passed for finding in values.check(kind, p, tables, expected))
    found = [
        finding.claim for finding in values.roundoff(kind, p, tables, mine) if not finding.passed
    ]
    assert found == ["statistic closure.trajectory.max is as large as round-off is"]


@pytest.mark.parametrize("kind", forge.PARAMETERS)
def test_a_residual_that_nobody_changed_passes(sound, tmp_path, kind):
    root = shutil.copytree(sound, tmp_path / "run")
    assert forged(root, kind, lambda tables: None) == []


def test_a_gate_must_hold_for_our_own_numbers_too():
    gates = [
        {"name": "a", "statistic": "residual", "relation": "<", "bound": 1e-12, "passed": True},
        {"name": "b", "statistic": "count", "relation": "==", "bound": 7, "passed": True},
        {"name": "c", "statistic": "residual", "relation": "<", "bound": 0.0, "passed": False},
    ]
    study = SimpleNamespace(verdict={"gates": gates})
    assert verdict.gates_of_ours(study, {"residual": 1e-13, "count": 7.0}).passed
    assert (
        "a: ours is 2e-12" in verdict.gates_of_ours(study, {"residual": 2e-12, "count": 7.0}).where
    )
    assert "b: ours is 8.0" in verdict.gates_of_ours(study, {"residual": 0.0, "count": 8.0}).where


# Designs at the ends of the ranges, on which run and audit once disagreed.
EXTREME = [
    (
        "structural",
        {
            "seed": 20261020,
            "families": 2,
            "depths": [3],
            "concentration": 0.001,
            "column_concentration": 0.9211866131967175,
            "floor": 0.42033829071381534,
            "alpha": 0.29592082643086415,
            "omegas": [0.0, 100],
            "updates": 1,
            "step": 0.0009373576508541841,
            "leak": 766880.8733350752,
            "rank_tol": 0.5,
            "steps": [0.3, 0.0001],
            "negative_start": [0.09365019228372262, 0.3468584244786025, 0.5594913832376749],
            "negative_target": [0.7733291212479273, 0.002885189370460965, 0.22378568938161175],
            "positive_start": [0.7660013188909829, 0.17444106307377405, 0.059557618035243017],
            "positive_target": [0.012469043319632502, 0.9708139969222962, 0.01671695975807131],
        },
    ),
    (
        "structural",
        {
            "seed": 960448671598,
            "concentration": 0.9423457629618924,
            "depths": [1, 3],
            "negative_start": [0.002165353258396088, 0.9966277370387027, 0.0012069097029012168],
            "negative_target": [0.8271374735639403, 0.015878891851095055, 0.15698363458496462],
            "positive_start": [0.0025755629316872954, 0.0016019912622761733, 0.9958224458060365],
            "positive_target": [0.4087522914892041, 0.26155851758868476, 0.32968919092211113],
            "families": 2,
            "floor": 0.6240750551453617,
            "column_concentration": 2.2527310820880535,
            "alpha": 100.0,
            "omegas": [0.011429205616781034, 0.0],
            "leak": 24.010729236343497,
            "step": 1.0,
            "rank_tol": 1.0275446254138857e-20,
            "steps": [1.0, 0.047916931712970394],
            "updates": 2,
        },
    ),
    (
        "structural",
        {
            "seed": 692178790717,
            "concentration": 0.001,
            "depths": [3],
            "negative_start": [0.001, 0.001, 0.998],
            "negative_target": [0.4023800858368615, 0.13573867702781414, 0.46188123713532425],
            "positive_start": [0.03616946869230688, 0.7405561880154719, 0.2232743432922213],
            "positive_target": [0.13821869408629645, 0.7235626118274071, 0.13821869408629645],
            "families": 2,
            "floor": 0.9,
            "column_concentration": 52.0709500691799,
            "alpha": 100.0,
            "omegas": [0.0, 100.0],
            "leak": 35.08705282330068,
            "step": 1e-06,
            "rank_tol": 6.294726925170934e-23,
            "steps": [0.05843318118839844, 1e-06],
            "updates": 5,
        },
    ),
    (
        "threshold",
        {
            "seed": 858488892121,
            "concentration": 0.001,
            "depths": [3],
            "floor": 1e-09,
            "betas": [100.0, 0.0],
            "families": 3,
            "finite_step": 1e-08,
            "rank_tol": 1e-24,
            "resamples": 40,
        },
    ),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "others"),
    [
        *EXTREME,
        ("structural", {"step": 10.0}),
        ("structural", {"step": 1e3}),
        ("structural", {"step": 3.0, "updates": 4}),
        ("structural", {"leak": 1e-8}),
        ("structural", {"leak": 1e-6, "step": 2.0}),
        ("structural", {"column_concentration": 0.05, "floor": 1e-9}),
        ("structural", {"omegas": [1e6, 1e-6]}),
        ("threshold", {"rank_tol": 0.1}),
        ("threshold", {"rank_tol": 0.9}),
        ("threshold", {"floor": 1e-9}),
        ("horizon", {"leak": 1e-6}),
        ("horizon", {"omega": 1e3}),
    ],
)
def test_run_and_audit_agree_where_round_off_grows(kind, others):
    study = small(kind)
    p = vars(study.values(**others))
    made = study_run.compute(study, **others)
    tables = Tables({name: dict(table) for name, table in made.items()})
    auditor = kinds.find(kind)
    expected = values.statistics(auditor, p, tables)
    mine = values.own(auditor, p, tables)
    findings = [
        *values.check(auditor, p, tables, expected),
        *values.roundoff(auditor, p, tables, mine),
    ]
    assert [(finding.claim, finding.error) for finding in findings if not finding.passed] == []


def test_what_round_off_took_is_no_licence():
    # Where noise grows beyond a millionth of a weight, the tolerance grows no further: a design
    # cannot make its check empty.
    p = forge.PARAMETERS["structural"] | {"leak": 1e-15, "step": 2.0}
    weights = values.recompute(kinds.find("structural"), p)["trajectory_weights"]
    for column in weights.values():
        assert (
            column.tolerance * np.asarray(column.scale)
            <= 1.001e-6 * np.maximum(column.values, 1e-3)
        ).all()
