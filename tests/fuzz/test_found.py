"""What the fuzz found, one example each: none of these was refused in one sentence before."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
import whorl_audit
from audit import forge
from fuzz import tables
from report import folders
from study.small import small
from whorl import measured
from whorl.study import design, lock, replicate, report
from whorl.study.report import page
from whorl.sweep import design as sweeps


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (
            lambda: wh.native(0.1, law=np.zeros((3, 1))),
            r"^law must be rotational\(...\), .* it is array\(\[\[0.\], \[0.\], \[0.\]\]\)$",
        ),
        (
            lambda: wh.adaptive(0.1, gate=jnp.zeros((9, 9))),
            r"^gate must be .*, but it is Array\(.{70,80}\.\.\.$",
        ),
        (
            lambda: wh.quarter_turn(10**400),
            r"^outputs must be a whole number of at most 63 bits, but it is 10{76}\.\.\.$",
        ),
        (lambda: wh.quarter_turn(10**5000), r"^outputs must be .*, but it is a very long number$"),
        (
            lambda: wh.Network.random((3, 10**400), seed=1),
            r"^widths must be a whole number of at most 63 bits, but it is 10*\.\.\.$",
        ),
        (lambda: wh.Network([np.eye(3)], support=3), r"^support must be a list, but it is 3$"),
        (
            lambda: wh.Network([np.eye(3)], support=[[[1], [1, 2]]]),
            r"^support 0 must be a rectangular array of numbers, but ",
        ),
        (
            lambda: wh.Network([np.full((3, 3), 1 / 3)], rates=[[1.0, []]]),
            r"^rates of layer 0 must be a rectangular array of numbers, but ",
        ),
        (lambda: wh.Network({1: np.eye(3)}), r"^layers must be a list, but it is \{1: array"),
        (
            lambda: wh.Network(np.float64(1)),
            r"^layers must be a list, but it is np.float64\(1.0\)$",
        ),
        (
            lambda: wh.Network([np.eye(3, dtype=np.longdouble)]),
            r"^layer 0 must hold numbers of at most 64 bits, but its type is float128$",
        ),
        (
            lambda: wh.Network.random((3, 3), seed=1, logits=2.0),
            r"^logits must be a list, but it is 2.0$",
        ),
        (
            lambda: wh.Network.random((3, 3), seed=1, dtype="x"),
            r"^dtype must be a floating type, but it is 'x'$",
        ),
        (
            lambda: wh.Network.random((3, 3), seed=1, dtype=int),
            r"^dtype must be a floating type, but it is int64$",
        ),
        (
            lambda: wh.leaky([[1], [1, 2]]),
            r"^mu must be a rectangular array of numbers, but its rows have different lengths$",
        ),
    ],
)
def test_a_value_of_the_wrong_kind(call, rule):
    with pytest.raises(ValueError, match=rule):
        call()


def test_a_study_that_does_not_ship_has_no_shipped_lock():
    with pytest.raises(ValueError, match=r"^kind must be one of structural, .*, but it is 'mine'$"):
        lock.shipped_lock("mine")


def test_a_sweep_with_more_programs_than_anybody_could_compile():
    depths, widths = (", ".join(map(str, range(least, 65))) for least in (1, 3))
    head = 'name = "x"\ntitle = "x"\ndesign = "random"\nseed = 1\npoints = 1\n'
    text = f"{head}[network]\ndepth = [{depths}]\nwidth = [{widths}]\n[schedule]\nepochs = [{depths}]\n"
    with pytest.raises(
        ValueError,
        match=r"line 6: a sweep must have at most 100000 compiled shapes, but it has 253952$",
    ):
        sweeps.parse(text.encode())


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_measurements_whose_squares_no_double_holds(size):
    columns = {name: size * values for name, values in tables.sound().items()}
    with pytest.raises(
        ValueError,
        match=r"^the squares of all residual must sum to between 1e-120 and 1e\+120, but .*: use other units$",
    ):
        measured.certify(*arrays(columns))


@pytest.mark.parametrize(
    ("named", "rule"),
    [
        (
            {"alpha": None},
            r"^alpha must be a number greater than 0 and less than 1, but it is None$",
        ),
        (
            {"alpha": 10**400},
            r"^alpha must be a number greater than 0 and less than 1, but it is 10{76}\.\.\.$",
        ),
        ({"seed": None}, r"^seed must be a whole number of at least 0, but it is None$"),
        ({"seed": -1}, r"^seed must be a whole number of at least 0, but it is -1$"),
        (
            {"time_scale": 10**400},
            r"^time_scale must be a number greater than 0, but it is 10{76}\.\.\.$",
        ),
        (
            {"sample": [1, []]},
            r"^sample must be a rectangular array of numbers, but its rows have different lengths$",
        ),
        (
            {"uncertainty": 1e200},
            (
                r"^row 0, uncertainty: uncertainties must lie from 1e-60 to 1e\+60, but one is "
                r"1e\+200$"
            ),
        ),
    ],
)
def test_measurements_with_an_option_of_the_wrong_kind(named, rule):
    with pytest.raises(ValueError, match=rule):
        measured.certify(*arrays(tables.sound()), **named)


def arrays(columns):
    return [
        np.stack([columns[f"{role}_{number}"] for number in (1, 2, 3)], axis=1)
        for role in ("residual", "velocity")
    ]


def test_measurements_whose_lines_end_as_on_old_machines(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(tables.csv(tables.sound()).replace("\n", "\r"))
    with pytest.raises(
        ValueError,
        match=r"mine\.csv, line 1: the file must begin with one line of names, but it cannot be read as CSV$",
    ):
        measured.read(path)


def test_measurements_whose_samples_have_different_outputs(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "measurement,output,sample,residual,velocity\n"
        + "".join(f"1,{n},{s},0.5,0.5\n" for n, s in enumerate("aabbb"))
    )
    with pytest.raises(
        ValueError,
        match=r"line 2, column sample: every sample must have the same outputs, but there are 5 lines for 2 samples$",
    ):
        measured.read(path)


def test_measurements_whose_file_is_damaged_inside(tmp_path):
    path = tmp_path / "mine.parquet"
    content = bytearray(tables.parquet(tables.sound(4, 2)))
    content[4] = 0  # the head of the first page
    path.write_bytes(content)
    with pytest.raises(
        ValueError,
        match=r"mine\.parquet: the file must be a whole Parquet file, but a part of it is damaged$",
    ):
        measured.read(path)


@pytest.fixture
def told(tmp_path):
    return folders.write_run(tmp_path / "run", [design.shipped("horizon").text])


def test_a_report_on_a_folder_that_lost_a_file(told):
    (told / "horizon" / "lock.json").unlink()
    with pytest.raises(
        ValueError,
        match=r"^horizon must be a finished study, but a file of it cannot be read: .*lock\.json",
    ):
        report.read(told)


def test_a_report_on_a_folder_whose_table_is_another(told):
    (told / "horizon" / "tables" / "statistics.parquet").write_bytes(tables.parquet({"x": [1.0]}))
    with pytest.raises(
        ValueError,
        match=r"^horizon must be a study as whorl wrote it, but a file of it was changed: 'name'$",
    ):
        report.read(told)


def test_a_report_on_a_verdict_whose_gates_are_none(told):
    path = told / "horizon" / "verdict.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"gates": [1]}))
    with pytest.raises(
        ValueError, match=r"^run must hold what whorl wrote, but its page cannot be drawn: "
    ):
        page.render(report.read(told))


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"PAR1", "must be a table of replicates, but it cannot be read"),
        (None, "must have the columns seed, statistic, value, but it has others"),
        ([1, 1, 2], "must have the same statistics for every seed, but some are missing"),
    ],
)
def test_a_file_of_replicates_that_was_changed(tmp_path, content, rule):
    path = tmp_path / "many.parquet"
    seeds = content if isinstance(content, list) else [1]
    columns = {
        "seed": seeds,
        "statistic": ["a", "b", "a"][: len(seeds)],
        "value": [0.5] * len(seeds),
    }
    path.write_bytes(
        content
        if isinstance(content, bytes)
        else of_this_design(columns if content else {"seed": [1]})
    )
    with pytest.raises(ValueError, match=rf"many\.parquet {rule}: remove it or name another file$"):
        replicate.replicate(small(), [1], path)


def of_this_design(columns):
    table = tables.pa.table(columns).replace_schema_metadata(
        {"study": "mine", "design": small().sha256, "quick": "False"}
    )
    return replicate.store.parquet(table)


def test_a_folder_whose_design_has_a_list_for_its_kind(tmp_path):
    root = forge.write_run(tmp_path / "run", ("threshold",))
    path = root / "threshold" / "design.toml"
    path.write_text(path.read_text().replace('kind = "threshold"', "kind = []"))
    with pytest.raises(
        whorl_audit.UnreadableError, match=r"^the kind of a design must be one of .* says \[\]$"
    ):
        whorl_audit.audit(root)


def test_a_folder_whose_design_has_a_number_that_no_double_holds(tmp_path):
    root = forge.write_run(tmp_path / "run", ("threshold",))
    path = root / "threshold" / "design.toml"
    path.write_text(
        path.read_text().replace(
            "finite_step = { value = 0.001,", f"finite_step = {{ value = {10**400},"
        )
    )
    rule = (
        r"^finite_step must be a number from 1e-08 to 1, but it is 10{76}\.\.\., in .*design\.toml$"
    )
    with pytest.raises(whorl_audit.UnreadableError, match=rule):
        whorl_audit.audit(root)


def test_a_folder_whose_design_asks_for_more_than_any_memory_holds(tmp_path):
    root = forge.write_run(tmp_path / "run", ("threshold",))
    path = root / "threshold" / "design.toml"
    sound = path.read_text()
    path.write_text(sound.replace("families = { value = 6,", f"families = {{ value = {10**15},"))
    rule = rf"^families must be a whole number from 2 to 100000, but it is {10**15}, in .*design\.toml$"
    with pytest.raises(whorl_audit.UnreadableError, match=rule):
        whorl_audit.audit(root)
    path.write_text(sound.replace("families = { value = 6,", f"families = {{ value = {10**5},"))
    forge.seal(root)
    failed = [finding.where for finding in whorl_audit.audit(root).failures]
    assert f"tasks has 36 rows instead of {6 * 10**5}" in failed


def test_a_manifest_with_a_name_that_would_break_the_line(tmp_path):
    root = forge.write_run(tmp_path / "run", ("threshold",))
    path = root / "manifest-sha256.txt"
    path.write_text(
        path.read_text().replace("threshold/design.toml", "\x0b\x1bhreshold/design.toml")
    )
    told = [finding.where for finding in whorl_audit.audit(root).failures]
    assert any(r"\x0b\x1bhreshold" in where for where in told)
    assert all(where.isprintable() for where in told)
