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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("kind", "others"),
    [
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
