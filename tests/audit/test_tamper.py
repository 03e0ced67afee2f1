"""Nothing can be changed without being found: not a value, a row, a hash, a gate or a figure."""

import json
import subprocess
import sys

import numpy as np
import pytest

import whorl_audit
from audit import forge, tamper

KINDS = tuple(forge.PARAMETERS)
ARRANGEMENTS = ("dropped", "duplicated", "swapped", "nan")
FILES = ("design.toml", "lock.json", "verdict.json", "figures/{}.png", "figures/{}.pdf")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return forge.write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    root = tmp_path_factory.mktemp("full") / "paper"
    subprocess.run(
        [sys.executable, "-m", "whorl", "reproduce", "--out", str(root)],
        check=True,
        capture_output=True,
    )
    return root


def test_what_was_not_tampered_with_passes(run):
    assert whorl_audit.audit(run).failures == ()
    assert not tamper.finds(run)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_any_value_is_found_though_all_hashes_are_made_anew(run, kind):
    rng = np.random.default_rng(KINDS.index(kind))
    missed = [
        (table, column.name)
        for study, table, column in tamper.columns(run)
        if study == kind and not tamper.value_is_found(run, study, table, column, rng)
    ]
    assert missed == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_found_though_all_that_follows_from_it_is_made_anew(run, kind):
    rng = np.random.default_rng(10 + KINDS.index(kind))
    missed = [
        (table, column.name)
        for study, table, column in tamper.columns(run)
        if study == kind
        and column.role in ("drawn", "computed")
        and not tamper.consistent_change_is_found(run, kind, table, column, rng)
    ]
    assert missed == []


@pytest.mark.parametrize("how", ARRANGEMENTS)
def test_a_table_that_lost_its_order_is_found(run, how):
    rng = np.random.default_rng(20)
    tables = sorted({(study, table) for study, table, _ in tamper.columns(run)})
    assert [
        table for table in tables if not tamper.arrangement_is_found(run, *table, how, rng)
    ] == []


@pytest.mark.parametrize("name", FILES)
def test_a_changed_bit_of_a_file_is_found(run, name):
    rng = np.random.default_rng(30)
    assert all(
        tamper.file_change_is_found(run, run / kind / name.format(kind), rng)
        for kind in KINDS
        for _ in range(4)
    )


@pytest.mark.parametrize("name", ["manifest-sha256.txt", "summary.json", "environment.json"])
def test_a_changed_bit_beside_the_studies_is_found(run, name):
    rng = np.random.default_rng(31)
    assert all(tamper.file_change_is_found(run, run / name, rng) for _ in range(8))


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_digit_of_a_parameter_is_found_though_the_run_claims_the_new_design(run, kind):
    path = run / kind / "design.toml"
    text, verdict, lock = path.read_text(), run / kind / "verdict.json", run / kind / "lock.json"
    unused = {"rank_tol", "chunk"} if kind != "structural" else {"rank_tol"}
    for name, value in forge.PARAMETERS[kind].items():
        if name in unused or isinstance(value, list) or name in ("width", "mixtures"):
            continue
        with tamper.kept(path, verdict, lock, *run.glob("*.*")):
            path.write_text(
                text.replace(
                    f"{name} = {{ value = {json.dumps(value)}",
                    f"{name} = {{ value = {json.dumps(value * 2)}",
                )
            )
            forge.seal(run)
            assert tamper.finds(run), name


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first one waits for the run
def test_the_full_run_passes(full):
    assert whorl_audit.audit(full).failures == ()


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first one waits for the run
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_changes_of_the_full_run_are_found(full, part):
    rng = np.random.default_rng([40, part])
    columns = list(tamper.columns(full))
    missed = []
    for number in range(part * 88, (part + 1) * 88):
        study, table, column = columns[number % len(columns)]
        if not tamper.value_is_found(full, study, table, column, rng):
            missed.append((study, table, column.name))
    tables = sorted({(study, table) for study, table, _ in columns})
    for how in ARRANGEMENTS:
        for _ in range(2):
            study, table = tables[rng.integers(len(tables))]
            if not tamper.arrangement_is_found(full, study, table, how, rng):
                missed.append((study, table, how))
    files = [
        *full.glob("*/*.toml"),
        *full.glob("*/lock.json"),
        *full.glob("*/verdict.json"),
        *full.glob("*/figures/*"),
        *full.glob("*.*"),
    ]
    for path in rng.choice(np.array(files, object), 4):
        if not tamper.file_change_is_found(full, path, rng):
            missed.append(path.name)
    assert missed == []
