"""Every checker is seen to fail, and to name what it found."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import whorl_audit
from audit import forge, tamper
from whorl_audit import copies, figures, folder, layout, manifest, verdict
from whorl_audit.finding import measured
from whorl_audit.types import Expected


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return forge.write_run(tmp_path_factory.mktemp("checked"))


def failed(findings):
    return [finding.claim for finding in findings if not finding.passed]


def edit(path, change):
    """Change a JSON file by a function, in place."""
    said = json.loads(path.read_text())
    change(said)
    path.write_text(json.dumps(said))


# --- the manifest

MANIFEST_FAULTS = {
    "the manifest can be read": lambda lines: [*lines, "nonsense"],
    "the manifest lists every file": lambda lines: lines[1:],
    "every file that the manifest lists exists": lambda lines: [*lines, "0" * 64 + "  nothing.txt"],
    "every file has the SHA-256 that the manifest gives": lambda lines: [
        "0" * 64 + lines[0][64:],
        *lines[1:],
    ],
}


@pytest.mark.parametrize("claim", MANIFEST_FAULTS)
def test_a_wrong_manifest_is_found(run, claim):
    path = run / manifest.NAME
    with tamper.kept(path):
        path.write_text("\n".join(MANIFEST_FAULTS[claim](path.read_text().splitlines())) + "\n")
        assert failed(manifest.check(run)) == [claim]
    assert failed(manifest.check(run)) == []


@pytest.mark.parametrize(
    "line",
    [
        "{0}  ../elsewhere.txt",
        "{0}  /elsewhere.txt",
        "{0}  environment.json",
        "{0} environment.json",
    ],
)
def test_a_line_that_leaves_the_folder_or_repeats_itself_is_found(run, line):
    path = run / manifest.NAME
    with tamper.kept(path):
        path.write_text(path.read_text() + line.format("0" * 64) + "\n")
        assert "the manifest can be read" in failed(manifest.check(run))


def test_what_the_audit_writes_needs_no_line(run):
    own = run / "horizon" / layout.OWN
    own.write_text("{}")
    assert failed(manifest.check(run)) == []
    own.unlink()


# --- the verdict


def consistently(said):
    """Move the value of a gate, and all of the gate that follows from it."""
    gate = said["gates"][0]
    value = gate["value"] * (1 + 1e-6) + 1e-9
    passed = verdict.RELATIONS[gate["relation"]](value, gate["bound"])
    gate.update(
        value=value, margin=verdict.margin(gate["relation"], value, gate["bound"]), passed=passed
    )


VERDICT_FAULTS = {
    "study": lambda said: said.update(study="another"),
    "title": lambda said: said.update(title="another"),
    "expected": lambda said: said.update(expected="FAIL"),
    "verdict": lambda said: said.update(verdict={"PASS": "FAIL", "FAIL": "PASS"}[said["verdict"]]),
    "registered": lambda said: said.update(registered=False),
    "a reason": lambda said: said.update(why_unregistered="it was a Monday"),
    "quick": lambda said: said.update(quick=True),
    "quick that is no truth": lambda said: said.update(quick=None),
    "lock": lambda said: said.update(lock="0" * 64),
    "design": lambda said: said.update(design="0" * 64),
    "hash of a table": lambda said: said["tables"]["tasks"].update(sha256="0" * 64),
    "rows of a table": lambda said: said["tables"]["tasks"].update(rows=1),
    "a table too many": lambda said: said["tables"].update(more={"sha256": "0" * 64, "rows": 1}),
    "no tables": lambda said: said.update(tables=None),
    "a gate too few": lambda said: said["gates"].pop(),
    "no gates": lambda said: said.update(gates=None),
    "name of a gate": lambda said: said["gates"][0].update(name="another"),
    "statistic of a gate": lambda said: said["gates"][0].update(statistic="rows.tasks"),
    "bound of a gate": lambda said: said["gates"][0].update(bound=said["gates"][0]["bound"] * 2),
    "relation of a gate": lambda said: said["gates"][0].update(relation="!="),
    "value of a gate": lambda said: said["gates"][0].update(
        value=said["gates"][0]["value"] * (1 + 1e-6) + 1e-20
    ),
    "value of a gate and what follows": consistently,
    "value of a gate that is none": lambda said: said["gates"][0].update(value="much"),
    "outcome of a gate": lambda said: said["gates"][0].update(
        passed=not said["gates"][0]["passed"]
    ),
    "margin of a gate": lambda said: said["gates"][0].update(
        margin=said["gates"][0]["margin"] + 1e-6
    ),
    "margin of a gate that is none": lambda said: said["gates"][0].update(margin=None),
}


@pytest.mark.parametrize("kind", forge.PARAMETERS)
@pytest.mark.parametrize("fault", VERDICT_FAULTS)
def test_a_wrong_verdict_is_found(run, kind, fault):
    path = run / kind / "verdict.json"
    with tamper.kept(path):
        edit(path, VERDICT_FAULTS[fault])
        assert tamper.finds(run, kind)


@pytest.mark.parametrize("kind", forge.PARAMETERS)
@pytest.mark.parametrize("field", ["verdict", "expected", "registered", "quick"])
def test_a_summary_that_says_otherwise_is_found(run, kind, field):
    studies = [folder.read(path) for path in folder.studies(run)]
    said = json.loads((run / "summary.json").read_text())
    assert verdict.summary(said, studies).passed
    said["studies"][kind][field] = "another"
    assert not verdict.summary(said, studies).passed


def test_a_summary_of_other_studies_is_found(run):
    studies = [folder.read(path) for path in folder.studies(run)]
    said = json.loads((run / "summary.json").read_text())
    assert not verdict.summary(said, studies[:-1]).passed
    assert not verdict.summary({}, studies).passed


@pytest.mark.parametrize(
    ("relation", "value", "margin"),
    [
        ("<", 1.0, 2.0),
        ("<=", 4.0, -1.0),
        (">", 4.0, 1.0),
        (">=", 1.0, -2.0),
        ("==", 3.0, 0.0),
        ("==", 2.0, -1.0),
    ],
)
def test_a_margin_is_negative_outside_the_bound(relation, value, margin):
    assert verdict.margin(relation, value, 3.0) == margin


# --- the registration

LOCKS = {
    "is empty": (lambda lock: lock.clear(), "a run that says it is registered is"),
    "is of another design": (
        lambda lock: lock.update(design="0" * 64),
        "a run that says it is registered is",
    ),
    "has no hashes": (
        lambda lock: lock.update(sources={"src/one.py": "none"}),
        "the lock holds hashes",
    ),
    "has no sources": (lambda lock: lock.pop("sources"), "the lock holds hashes"),
}


@pytest.mark.parametrize("fault", LOCKS)
def test_a_registered_run_whose_lock_is_wrong_is_found(run, fault):
    change, claim = LOCKS[fault]
    path = run / "structural"
    with tamper.kept(path / "lock.json", path / "verdict.json", run / manifest.NAME):
        edit(path / "lock.json", change)
        forge.seal(run)
        assert failed(verdict.registration(folder.read(path))) == [claim]


def test_a_run_without_a_lock_passes_unregistered(tmp_path):
    run = forge.write_run(tmp_path / "run", registered=False)
    assert whorl_audit.audit(run).failures == ()


def test_a_quick_run_is_audited_with_its_own_values(tmp_path):
    for kind, quick in (
        ("structural", {"families": 2, "depths": [3]}),
        ("threshold", {"families": 4}),
        ("horizon", {"epochs": 1}),
    ):
        forge.write_study(tmp_path / kind, kind, forge.PARAMETERS[kind], quick=quick)
    forge.seal(tmp_path)
    assert whorl_audit.audit(tmp_path).failures == ()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("structural", {"families": 1, "depths": [1], "omegas": [0.7], "updates": 1, "alpha": 2.0}),
        ("structural", {"depths": [5, 3, 2], "rank_tol": 1e-13}),
        ("threshold", {"families": 2, "depths": [3], "betas": [0.0]}),
        ("threshold", {"families": 3, "depths": [6, 1], "betas": [8.0, 1.0, 0.0], "floor": 1e-6}),
        ("horizon", {"trials": 2, "depths": [2], "betas": [3.0], "scales": [0.3], "epochs": 1}),
        ("horizon", {"depths": [4, 1], "scales": [1.0, 0.01], "omega": 0.5, "leak": 0.01}),
    ],
)
def test_a_design_of_another_size_is_audited(tmp_path, kind, values):
    forge.write_study(tmp_path / kind, kind, forge.PARAMETERS[kind] | values)
    forge.seal(tmp_path)
    assert whorl_audit.audit(tmp_path).failures == ()


# --- the tables


def set_role(table):
    fields = [field.with_metadata({"role": "computed"}) for field in table.schema]
    return table.cast(pa.schema(fields))


SHAPE_FAULTS = {
    "a column dropped": lambda table: table.drop_columns(table.column_names[-1]),
    "a column more": lambda table: table.append_column("more", pa.array([0.0] * table.num_rows)),
    "a column renamed": lambda table: table.rename_columns([*table.column_names[:-1], "other"]),
    "columns in another order": lambda table: table.select(table.column_names[::-1]),
    "another type": lambda table: table.set_column(0, "family", table[0].cast(pa.int32())),
    "another role": set_role,
    "no rows": lambda table: table.slice(0, 0),
    "a null": lambda table: tamper.with_value(table, table.column_names[-1], 0, None),
    "an infinity": lambda table: tamper.with_value(table, table.column_names[-1], 0, float("inf")),
}


@pytest.mark.parametrize("fault", SHAPE_FAULTS)
@pytest.mark.parametrize("table", ["tasks", "responses", "operators"])
def test_a_table_without_its_shape_is_found(run, table, fault):
    assert tamper.table_change_is_found(run, "structural", table, SHAPE_FAULTS[fault])


def test_a_table_that_is_missing_unknown_or_unreadable_is_found(run):
    study = folder.read(run / "threshold")
    assert not failed(whorl_audit.check_study(study))
    for tables in (
        {name: table for name, table in study.tables.items() if name != "draws"},
        study.tables | {"more": study.tables["draws"]},
        study.tables | {"draws": "no Parquet file"},
    ):
        assert failed(whorl_audit.check_study(replace(study, tables=tables)))


@pytest.mark.parametrize("names", [{"rank.min": "rank.least"}, {"rank.min": "rows.modes"}])
def test_a_statistic_of_another_name_is_found(run, names):
    def change(stored):
        return stored.set_column(
            0,
            stored.schema.field(0),
            pa.array([names.get(name, name) for name in stored[0].to_pylist()]),
        )

    assert tamper.table_change_is_found(run, "structural", "statistics", change)


@pytest.mark.parametrize(
    "arranged",
    [lambda rows: [1, 0, *rows[2:]], lambda rows: rows[:-1]],
    ids=["swapped", "without the last"],
)
def test_statistics_in_another_order_and_too_few_are_found(run, arranged):
    assert tamper.table_change_is_found(
        run,
        "structural",
        "statistics",
        lambda stored: stored.take(arranged(list(range(len(stored))))),
    )


def test_a_text_copy_must_say_what_its_table_says(run):
    table = pq.ParquetFile(run / "horizon" / "tables" / "trajectories.parquet").read()
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    text = sink.getvalue().to_pybytes().decode()
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    columns["policy"] = np.array(table["policy"].to_pylist())
    assert copies.fault(text, columns) is None
    assert (
        copies.fault(text.replace("adaptive", "adoptive", 1), columns) == "policy at row 2 differs"
    )
    assert copies.fault(text.replace("gap", "gasp", 1), columns) == "its columns differ"
    assert copies.fault(text.replace("gap", "aap", 1), columns) == "its columns differ"
    assert copies.fault("\n".join(text.splitlines()[:-1]), columns) == "its rows differ"
    assert (
        copies.fault("\n".join([text.rstrip(), text.splitlines()[-1]]), columns)
        == "its rows differ"
    )
    assert copies.fault(text.rstrip() + ",1", columns) == "its rows differ"
    assert (
        copies.fault(text.replace("step_matched", "step_matched_but_longer", 1), columns)
        == "policy at row 0 differs"
    )
    digit = text.rindex("1") if text.rindex("1") > text.rindex("2") else text.rindex("2")
    assert copies.fault(text[:digit] + "7" + text[digit + 1 :], columns)


def test_a_study_with_text_copies_is_audited(run):
    path = run / "horizon" / "tables" / "conditions.csv"
    pyarrow.csv.write_csv(pq.ParquetFile(path.with_suffix(".parquet")).read(), path)
    assert not tamper.finds(run, "horizon")
    path.write_text(path.read_text().replace("8", "9", 1))
    assert tamper.finds(run, "horizon")
    path.rename(path.with_name("more.csv"))
    assert tamper.finds(run, "horizon")
    path.with_name("more.csv").unlink()


# --- the figures


def test_a_figure_says_from_which_tables_it_was_drawn(tmp_path):
    hashes = {"tasks": "a" * 64, "modes": "b" * 64}
    text = json.dumps({"tasks": "a" * 64})
    escaped = text.replace("{", "\\173").replace("}", "\\}")
    utf16 = (
        b"%PDF-1.4\n<< /Keywords <" + ("\ufeff" + text).encode("utf-16-be").hex().encode() + b"> >>"
    )
    for name, content in {
        "a.png": forge.png(text),
        "b.pdf": forge.pdf(text),
        "c.pdf": forge.pdf(escaped),
        "d.pdf": utf16,
    }.items():
        (tmp_path / name).write_bytes(content)
        assert figures.fault(tmp_path / name, hashes) is None
        assert (
            figures.fault(tmp_path / name, hashes | {"tasks": "c" * 64})
            == "it was drawn from another table tasks"
        )


@pytest.mark.parametrize("name", ["horizon.png", "horizon.pdf"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"%PDF-1.4",
        b"\x89PNG\r\n\x1a\n",
        forge.png("{}"),
        forge.pdf("no JSON"),
        forge.pdf("[]"),
    ],
)
def test_a_figure_that_says_nothing_is_found(tmp_path, name, content):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / name).write_bytes(content)
    assert failed(figures.check(tmp_path, "horizon", {})) == [
        "every figure was drawn from these tables"
    ]


# --- errors and tolerances


def test_an_error_is_measured_by_its_scale():
    assert Expected(np.array([2.0, 0.0]), 0.1).errors(np.array([2.2, 0.3])) == pytest.approx(
        [0.1, 0.3]
    )
    assert Expected(np.array([2.0]), 0.1, np.array([4.0])).errors(np.array([2.2])) == pytest.approx(
        [0.05]
    )


@pytest.mark.parametrize("error", [float("nan"), float("inf"), 1.1])
def test_what_is_not_a_number_or_too_large_does_not_pass(error):
    assert not measured("a claim", error, 1.0, "here").passed
    assert measured("a claim", 1.0, 1.0, "here").passed
