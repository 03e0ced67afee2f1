"""The study of rules on a small design: drawn from the page, audited, spoilt, drawn as a figure."""

import dataclasses
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import whorl as wh
import whorl_audit
from study import from_the_page
from whorl.ground import store
from whorl.study import kinds
from whorl_studies.rules import chart, figure

KIND = "rules"
SMALL = {"seed": 91, "circuits": 3, "sizes": [8, 9], "families": 3, "depths": [2]}


def statistics(tables):
    table = tables["statistics"]
    return dict(zip(table["name"].tolist(), table["value"].tolist(), strict=True))


def test_the_registered_design_has_its_seed_and_at_least_200_circuits(study):
    p = study.values()
    assert p.seed == 20261119
    assert p.circuits * len(p.sizes) == 250
    assert (min(p.sizes), max(p.sizes)) == (8, 40)
    assert "rules" not in kinds.paper()


@pytest.mark.slow
def test_drawn_columns_follow_from_the_page_to_the_bit(study, tables):
    redone = from_the_page.DRAWN["rules"](vars(study.values(quick=True)))
    columns = kinds.get("rules").columns
    drawn = {name for name in tables for one in columns[name] if one.role == "drawn"}
    assert drawn == set(redone)
    for name, table in redone.items():
        for column, values in table.items():
            np.testing.assert_array_equal(tables[name][column], values, err_msg=f"{name}.{column}")


@pytest.mark.slow
def test_a_loop_is_what_the_library_makes_of_its_edges(tables):
    here = (tables["edges"]["nodes"] == 9) & (tables["edges"]["circuit"] == 1)
    rows = {name: column[here] for name, column in tables["edges"].items()}
    circuit = wh.Circuit(
        np.stack([rows["from"], rows["to"]], axis=1),
        rows["conductance"],
        sources=[0],
        outputs=[6, 7, 8],
        ground=[1],
    )
    here = (tables["loops"]["nodes"] == 9) & (tables["loops"]["circuit"] == 1)
    for name, rule in (
        ("propagation", wh.equilibrium_propagation()),
        ("coupled", wh.coupled_learning()),
    ):
        stored = tables["loops"][name][here].reshape(3, 3)
        loop = wh.closed_loop(circuit, [[1.0]], rule).reduced
        np.testing.assert_allclose(stored, loop, rtol=0, atol=1e-13 * np.abs(loop).max())


@pytest.mark.slow
def test_truths_of_a_loop_are_those_of_its_eigenvalues(tables):
    rows, loops = tables["circuits"], tables["loops"]
    for name in ("coupled", "alignment"):
        matrices = loops[name].reshape(-1, 3, 3)
        values = np.linalg.eigvals(matrices)
        turning = np.abs(values.imag).max(axis=1) > 1e-9 * np.abs(values).max(axis=1)
        np.testing.assert_array_equal(rows[f"{name}_turns"] == 1, turning)
    loops, rows = tables["network_loops"], tables["networks"]
    values = np.linalg.eigvals(loops["alignment"].reshape(-1, 3, 3))
    turning = np.abs(values.imag).max(axis=1) > 1e-9 * np.abs(values).max(axis=1)
    np.testing.assert_array_equal(rows["alignment_turns"] == 1, turning)


@pytest.mark.slow
def test_the_auditor_finds_nothing_wrong_and_finds_what_is(folder, tmp_path):
    assert whorl_audit.audit(folder).failures == ()
    kind = kinds.get("rules")
    for table, column in (
        ("loops", "coupled"),
        ("loops", "propagation"),
        ("nudges", "bias"),
        ("circuits", "alignment_slowest"),
        ("circuits", "coupled_rises"),
        ("network_loops", "alignment"),
        ("edges", "way_back"),
        ("networks", "x_1"),
        ("statistics", "value"),
    ):
        place = tmp_path / f"{table}-{column}"
        shutil.copytree(folder, place)
        path = next(place.glob(f"**/{table}.parquet"))
        rows = {name: np.array(one) for name, one in pq.read_table(path).to_pydict().items()}
        last = rows[column][-1]
        rows[column][-1] = 1 - last if rows[column].dtype.kind == "i" else last * (1 + 1e-6) + 1e-9
        path.write_bytes(store.parquet(kind.arrow(table, rows)))
        assert whorl_audit.audit(place).failures, (table, column)


@pytest.mark.slow
def test_the_figure_and_the_chart_show_every_circuit(tables):
    drawn = figure.draw(tables)
    count = len(tables["circuits"]["nodes"])
    points = [one.get_offsets() for one in drawn.axes[1].collections if one.get_gid() == "coupled"]
    np.testing.assert_array_equal(
        np.asarray(points[0])[:, 1], tables["circuits"]["coupled_discriminant"]
    )
    assert (
        sum(
            len(one.get_offsets())
            for one in drawn.axes[0].collections
            if one.get_gid() == "alignment"
        )
        == count
    )
    made = chart.chart(statistics(tables), tables["circuits"], "rules")
    np.testing.assert_allclose(
        made.figure["data"][0]["y"], tables["circuits"]["coupled_skew"], rtol=1e-5
    )
    assert f"one of {count} circuits" in made.summary


def test_what_a_run_asks_for_is_counted_by_arithmetic(study):
    kind = kinds.get("rules")
    work = kind.work(dataclasses.replace(study.values(), circuits=100_000))
    assert work.rows["edges"] == 100_000 * (17 + 25 + 41 + 57 + 81)
    assert list(work.rows) == [name for name in kind.columns if name != "statistics"]
