"""The threshold study against the paper's formulas in plain NumPy, and its bootstrap against
scikit-learn.
"""

import math

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

import oracle
from study import from_the_page
from study.every_kind import EveryKind
from study.small import made, rows, small, statistics
from whorl.study import design, run
from whorl.study.kinds import threshold


class TestThreshold(EveryKind):
    """The threshold study, as one of its kind."""

    kind = "threshold"


@pytest.fixture(scope="module")
def p():
    return made("threshold")[0]


@pytest.fixture(scope="module")
def t():
    return made("threshold")[1]


def test_every_table_follows_from_the_page_alone(p, t):
    redo(vars(p), t)


def test_the_square_of_the_step_is_a_product():
    study = small(
        finite_step=1.308e-05
    )  # whose second power differs from its square by a bit in common C libraries
    redo(vars(study.values()), run.compute(study))


@pytest.mark.slow
def test_every_registered_table_follows_from_the_page_alone():
    study = design.shipped("threshold")
    redo(vars(study.values()), run.compute(study))


def redo(p, t):
    """Drawn and derived columns to the bit, computed ones to round-off, statistics in their
    order.
    """
    for name, table in from_the_page.threshold_drawn(p).items():
        for column, values in table.items():
            np.testing.assert_array_equal(t[name][column], values, err_msg=f"{name}.{column}")
    stored, seen = t["configurations"], from_the_page.threshold_computed(p)
    derived = from_the_page.threshold_derived(p, stored, t["weights"])
    assert list(stored) == [*seen, *derived]
    for column, values in seen.items():
        exact = column in ("family", "depth", "beta", "selected")
        # Bending and its parts cancel among samples and layers: what is lost is measured by the
        # largest of the column.
        tolerance = {} if exact else {"rtol": 1e-11, "atol": 1e-13 * np.abs(values).max()}
        compare = np.testing.assert_array_equal if exact else np.testing.assert_allclose
        compare(stored[column], values, err_msg=column, **tolerance)
    for column, values in derived.items():
        np.testing.assert_array_equal(stored[column], values, err_msg=column)
    for column, values in from_the_page.threshold_draws(p, stored).items():
        np.testing.assert_allclose(t["draws"][column], values, rtol=1e-14, err_msg=column)
    found = from_the_page.threshold_statistics(p, stored, t["weights"], t["draws"])
    assert list(found) == t["statistics"]["name"].tolist()
    np.testing.assert_allclose(t["statistics"]["value"], list(found.values()), rtol=1e-14)


def test_a_table_that_does_not_follow_from_the_page_is_found(p, t):
    last = np.nextafter(t["weights"]["weight"], 1)
    for table, column, values in (
        ("weights", "weight", np.where(np.arange(last.size) == 7, last, t["weights"]["weight"])),
        (
            "configurations",
            "selected_bending",
            t["configurations"]["selected_bending"] * (1 + 1e-9),
        ),
        ("configurations", "ratio", np.nextafter(t["configurations"]["ratio"], 9)),
        ("draws", "auc", t["draws"]["auc"] + 1e-12),
    ):
        with pytest.raises(AssertionError):
            redo(vars(p), t | {table: t[table] | {column: values}})


def cases(t):
    """Every configuration with its layers, inputs and targets, from the stored tables."""
    for row in rows(t["configurations"]):
        here = t["tasks"]["family"] == row["family"]
        x, y = (
            np.stack([t["tasks"][f"{side}_{i}"][here] for i in range(3)], axis=1) for side in "xy"
        )
        w = t["weights"]
        mine = (
            (w["family"] == row["family"])
            & (w["depth"] == row["depth"])
            & (w["beta"] == row["beta"])
        )
        yield row, list(w["weight"][mine].reshape(row["depth"], 3, 3)), x, y


def test_displacement_and_bending_are_those_of_complex_steps(t):
    for row, layers, x, y in cases(t):
        rates, e = [np.ones(3)] * len(layers), y - oracle.predict(layers, x)
        s = int(np.argmax((e**2).sum(axis=1)))
        assert row["selected"] == s
        _, turning = oracle.turn_scores(
            layers, rates, x, y, s, lambda k: np.linalg.pinv(k, rcond=1e-10)
        )
        g, h = oracle.path_derivatives(layers, x, turning)
        assert row["displacement"] == pytest.approx((g**2).sum(), rel=1e-10)
        assert row["bending"] == pytest.approx((e * h).sum(), rel=1e-9, abs=1e-12)
        assert row["selected_displacement"] == pytest.approx((g[s] ** 2).sum(), rel=1e-10)
        assert row["selected_bending"] == pytest.approx((e[s] * h[s]).sum(), rel=1e-9, abs=1e-12)
        assert row["coefficient"] == pytest.approx(
            oracle.coefficient(layers, x, y, turning), rel=1e-9, abs=1e-13
        )


def test_losses_velocities_and_conditions_are_those_of_plain_steps(t, p):
    for row, layers, x, y in cases(t):
        rates, s = [np.ones(3)] * len(layers), row["selected"]
        straight, turning = oracle.turn_scores(
            layers, rates, x, y, s, lambda k: np.linalg.pinv(k, rcond=1e-10)
        )
        for way, size in (("loss", p.finite_step), ("back", -p.finite_step)):
            for side, amount in (("plus", 1), ("minus", -1), ("still", 0)):
                after = [
                    oracle.exponential_step(q, b + amount * r, size)
                    for q, b, r in zip(layers, straight, turning, strict=True)
                ]
                assert row[f"{way}_{side}"] == pytest.approx(
                    ((y - oracle.predict(after, x)) ** 2).sum() / 12, rel=1e-12
                )
        k, e = oracle.response(layers, rates, x[s : s + 1]), (y - oracle.predict(layers, x))[s]
        commanded = e + oracle.three_port() @ e
        np.testing.assert_allclose([row[f"commanded_{i}"] for i in range(3)], commanded, atol=1e-15)
        np.testing.assert_allclose(
            [row[f"velocity_{i}"] for i in range(3)],
            k @ np.linalg.pinv(k, rcond=1e-10) @ commanded,
            atol=1e-12,
        )
        values = np.sort(np.linalg.eigvalsh(k))
        assert row["condition"] == pytest.approx(values[2] / values[1], rel=1e-8)


def test_derived_columns_are_the_expressions_of_the_page(t, p):
    for row, layers, _, _ in cases(t):
        assert row["coefficient"] == (row["displacement"] - row["bending"]) / 12
        assert row["ratio"] == row["selected_bending"] / row["selected_displacement"]
        assert (row["favourable"], row["predicted"]) == (
            int(row["coefficient"] < 0),
            int(row["ratio"] > 1),
        )
        ahead, back = (
            (row[f"{w}_plus"] + row[f"{w}_minus"]) / 2 - row[f"{w}_still"] for w in ("loss", "back")
        )
        assert row["finite"] == (ahead + back) / (2 * p.finite_step**2)
        size = max(abs(row["coefficient"]), row["displacement"] / 12)
        assert row["coefficient_residual"] == abs(row["finite"] - row["coefficient"]) / size
        apart = [abs(row[f"velocity_{i}"] - row[f"commanded_{i}"]) for i in range(3)]
        assert row["response_residual"] == (apart[0] + apart[1]) + apart[2]
        assert row["column_residual"] == max(
            abs(math.fsum(layer[:, column]) - 1) for layer in layers for column in range(3)
        )


def test_draws_are_scikit_learns_on_the_repeated_families(t, p):
    c = t["configurations"]
    drawn = np.random.default_rng(np.random.SeedSequence(p.bootstrap_seed)).integers(
        0, p.families, (p.resamples, p.families)
    )
    for number, families in enumerate(drawn):
        chosen = np.concatenate([np.flatnonzero(c["family"] == family) for family in families])
        favourable, predicted, beta = (
            c[name][chosen] for name in ("favourable", "predicted", "beta")
        )
        assert t["draws"]["auc"][number] == pytest.approx(
            roc_auc_score(favourable, c["ratio"][chosen]), abs=1e-13
        )
        assert t["draws"]["accuracy"][number] == pytest.approx(
            accuracy_score(favourable, predicted), abs=1e-15
        )
        assert t["draws"]["favourable_first"][number] == pytest.approx(
            favourable[beta == p.betas[0]].mean(), abs=1e-15
        )
        assert t["draws"]["favourable_last"][number] == pytest.approx(
            favourable[beta == p.betas[-1]].mean(), abs=1e-15
        )


def test_statistics_are_those_of_the_tables(t, p):
    found, c = statistics(t), t["configurations"]
    assert found["auc"] == pytest.approx(roc_auc_score(c["favourable"], c["ratio"]), abs=1e-14)
    assert found["accuracy"] == pytest.approx(
        accuracy_score(c["favourable"], c["predicted"]), abs=1e-15
    )
    assert found["errors"] == (c["favourable"] != c["predicted"]).sum()
    assert found["favourable.first"] == c["favourable"][c["beta"] == p.betas[0]].mean()
    assert found["favourable.last"] == c["favourable"][c["beta"] == p.betas[-1]].mean()
    for name in ("auc", "accuracy", "favourable_first", "favourable_last"):
        ends = [found[f"{name.replace('_', '.')}.{end}"] for end in ("lower", "upper")]
        assert ends == np.quantile(t["draws"][name], [0.025, 0.975]).tolist()
    assert found["sign_agreement"] == 1.0
    assert [found[f"condition.{name}"] for name in ("q1", "median", "q3", "max")] == np.quantile(
        c["condition"], [0.25, 0.5, 0.75, 1]
    ).tolist()
    assert found["weight.min"] == t["weights"]["weight"].min() >= p.floor / 3
    assert found["response_residual.max"] == c["response_residual"].max() < 1e-10
    assert found["coefficient_residual.max"] == c["coefficient_residual"].max() < 1e-4
    assert found["column_residual.max"] == c["column_residual"].max() < 1e-12


def test_a_sign_that_does_not_agree_is_counted(t, p):
    finite = t["configurations"]["finite"].copy()
    finite[:4] *= -1
    assert (
        threshold.KIND.statistics(
            p, t | {"configurations": t["configurations"] | {"finite": finite}}
        )["sign_agreement"]
        == 0.75
    )


def test_a_family_is_the_same_when_others_are_added(t):
    fewer = run.compute(small("threshold", families=2, betas=[0.0, 8.0, 2.0, 1.0]))
    whole, part = t["configurations"], fewer["configurations"]
    here, there = whole["family"] < 2, np.isin(part["beta"], [0.0, 8.0])
    for name in ("family", "depth", "beta", "selected"):
        np.testing.assert_array_equal(part[name][there], whole[name][here])
    for name in ("displacement", "bending", "loss_plus", "condition"):
        np.testing.assert_allclose(part[name][there], whole[name][here], rtol=1e-12)
    kept = np.isin(fewer["weights"]["beta"], [0.0, 8.0])
    np.testing.assert_array_equal(
        fewer["weights"]["weight"][kept], t["weights"]["weight"][t["weights"]["family"] < 2]
    )
    np.testing.assert_array_equal(fewer["tasks"]["y_0"], t["tasks"]["y_0"][:12])


def test_a_run_without_both_kinds_of_row_has_no_area():
    # No family is ever favourable where routing is uniform.
    tables = run.compute(small("threshold", families=8, betas=[0.0]))
    assert not tables["configurations"]["favourable"].any()
    assert set(tables["draws"]["auc"].tolist()) == {0.5}
    found = statistics(tables)
    assert not {name for name in found if name.startswith("auc")}
    assert (found["favourable.first"], found["favourable.last.upper"]) == (0, 0)
