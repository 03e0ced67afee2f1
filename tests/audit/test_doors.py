"""A folder that a stranger sends.

Only regular files inside it are read, none without end, and each refusal is one sentence.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whorl_audit
import whorl_audit.__main__ as command
import whorl_cli
from audit import forge
from whorl_audit import copies, files, layout, record
from whorl_cli import _child

SMALL = {
    "threshold": forge.PARAMETERS["threshold"]
    | {"families": 2, "depths": [1], "betas": [0.0, 2.0], "resamples": 3},
    "structural": forge.PARAMETERS["structural"]
    | {"families": 1, "depths": [1], "updates": 1, "omegas": [0.5]},
}
STRANGE = "the folder holds what a run writes, and nothing else"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The smallest folder of two studies that passes its audit; do not change it."""
    with pytest.MonkeyPatch.context() as patch:
        for kind, values in SMALL.items():
            patch.setitem(forge.PARAMETERS, kind, values)
        root = forge.write_run(tmp_path_factory.mktemp("sound") / "run", tuple(SMALL))
    assert whorl_audit.audit(root).passed
    return root


@pytest.fixture
def run(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "run")


def failures(root):
    return {finding.claim: finding.where for finding in whorl_audit.audit(root).failures}


def whorl(*words, **options):
    """The command as its script starts it.

    The folder of the script is on the path, and the current one is not.
    """
    script = "import sys, whorl_cli; sys.exit(whorl_cli.main())"
    command = [sys.executable, "-P", "-c", script, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, **options
    )


# --- nothing in the folder is run

TRAPS = (
    "numpy",
    "pyarrow",
    "csv",
    "json",
    "argparse",
    "runpy",
    "sitecustomize",
    "usercustomize",
    "whorl_audit/__init__",
    "whorl_audit/__main__",
)


def test_nothing_in_the_folder_is_imported_by_whoever_stands_in_it(run, tmp_path):
    (run / "whorl_audit").mkdir()
    for name in TRAPS:
        (run / f"{name}.py").write_text(
            f"open({str(tmp_path / 'sprung')!r}, 'a').write({name!r} + '\\n')\n"
        )
    done = whorl("verify", ".", "--json", cwd=run)
    assert not (tmp_path / "sprung").exists()
    assert (done.returncode, done.stderr) == (1, "")
    assert [one["claim"] for one in json.loads(done.stdout)["findings"] if not one["passed"]] == [
        STRANGE
    ]


@pytest.mark.slow
def test_an_innocent_module_in_the_current_folder_disturbs_nothing(run, tmp_path):
    (tmp_path / "csv.py").write_text("print('my table')\n")
    done = whorl("verify", run.name, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_trap_works(run, tmp_path):
    (run / "numpy.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    subprocess.run(
        [sys.executable, "-m", "whorl_audit", "."], cwd=run, capture_output=True, check=False
    )
    assert (tmp_path / "sprung").exists()


def test_a_child_and_its_children_look_in_no_folder_that_depends_on_where_they_stand(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "src", str(tmp_path)]))
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    grandchild = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', 'import sys; print(sys.path)']).returncode)"
    done = subprocess.run(
        _child.python_command("-c", grandchild),
        env=_child.environment(),
        cwd=os.path.sep,
        capture_output=True,
        text=True,
        check=True,
    )
    path = done.stdout.strip().strip("[]").replace("'", "").split(", ")
    assert str(tmp_path) in path
    assert not {"", ".", "src", os.path.sep} & set(path)


# --- one definition of what a run folder holds


def test_a_design_at_the_root_hides_no_study_from_the_audit(run, capsys):
    """A whole study copied to the root, the manifest gone, a verdict below changed.

    No hash was made anew.
    """
    for name in ("design.toml", "lock.json", "verdict.json"):
        shutil.copy(run / "threshold" / name, run / name)
    shutil.copytree(run / "threshold" / "tables", run / "tables")
    for name in ("summary.json", "manifest-sha256.txt"):
        (run / name).unlink()
    shutil.rmtree(run / "structural" / "figures")
    verdict = run / "structural" / "verdict.json"
    verdict.write_text(verdict.read_text().replace("FAIL", "PASS"))
    assert whorl_cli.main(["verify", str(run)]) == 1
    assert STRANGE in capsys.readouterr().out
    assert whorl_cli.main(["report", str(run)]) == 1
    assert whorl_cli.main(["report", str(run), "--unverified"]) == 2
    assert not (run / "manifest-sha256.txt").exists()
    assert not (run / "report.html").exists()


def test_a_folder_without_its_manifest_is_refused_and_never_sealed(run, capsys):
    (run / "manifest-sha256.txt").unlink()
    for words in (["verify"], ["report"], ["report", "--unverified"]):
        assert whorl_cli.main([*words, str(run)]) == 2
        assert "manifest-sha256.txt must be a readable file" in capsys.readouterr().err
    assert not (run / "manifest-sha256.txt").exists()


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        "threshold/notes.txt",
        "threshold/tables/.hidden.parquet",
        "other/verdict.json",
        "tables/x.csv",
    ],
)
def test_what_no_run_writes_is_named(run, name):
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("{}")
    forge.write_manifest(run)
    where = failures(run)[STRANGE]
    assert name.removesuffix("/verdict.json").removesuffix("/x.csv") in where


# --- links and special files


def link(path, target):
    """Move a file out of the folder, and leave a link to it."""
    shutil.move(path, target)
    path.symlink_to(target)


@pytest.mark.parametrize(
    "name",
    [
        "threshold/tables/tasks.parquet",
        "threshold/figures/threshold.png",
        "environment.json",
        "threshold/tables",
        "threshold",
    ],
)
def test_a_link_out_of_the_folder_is_no_part_of_it(run, tmp_path, name):
    link(run / name, tmp_path / "elsewhere")
    assert f"the link {name}" in failures(run)[STRANGE]


@pytest.mark.parametrize("name", ["design.toml", "verdict.json", "lock.json"])
def test_a_link_in_place_of_a_record_is_refused(run, tmp_path, capsys, name):
    link(run / "threshold" / name, tmp_path / "elsewhere")
    assert command.main([str(run), "--no-write"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"whorl_audit: {name} must be a readable file, but ")
    assert said.endswith(": it is a link\n")


NAMES = [
    "design.toml",
    "verdict.json",
    "lock.json",
    "tables/tasks.parquet",
    "figures/one.png",
    "figures/one.pdf",
    "tables/tasks.csv",
]


@pytest.mark.parametrize(
    "name", [*(f"threshold/{name}" for name in NAMES), "manifest-sha256.txt", "summary.json"]
)
@pytest.mark.parametrize("special", ["pipe", "endless"])
def test_a_pipe_or_a_device_never_keeps_the_audit_waiting(run, capsys, name, special):
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name) if special == "pipe" else (run / name).symlink_to("/dev/zero")
    ended = []
    thread = threading.Thread(
        target=lambda: ended.append(command.main([str(run), "--no-write"])), daemon=True
    )
    thread.start()
    thread.join(60)
    assert ended in ([1], [2])
    said = capsys.readouterr()
    assert name.rpartition("/")[2] in said.out + said.err


def test_a_loop_of_links_is_named_once(run):
    (run / "threshold" / "again").symlink_to(run)
    (run / "again").symlink_to(".")
    assert failures(run)[STRANGE] == "folder: the link again"


def test_the_record_is_written_through_no_link(run, tmp_path):
    (tmp_path / "mine").write_text("precious")
    (run / "threshold" / f".audit.json.{os.getpid()}").symlink_to(tmp_path / "mine")
    (run / "structural" / "audit.json").symlink_to(tmp_path / "mine")
    command.main([str(run)])
    assert (tmp_path / "mine").read_text() == "precious"


# --- limits


def sparse(path, size):
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.parametrize(
    ("name", "limit"),
    [("design.toml", files.DESIGN), ("verdict.json", files.TEXT), ("lock.json", files.TEXT)],
)
def test_a_record_of_gigabytes_is_refused_by_its_size(run, capsys, name, limit):
    sparse(run / "threshold" / name, 2 << 30)
    assert command.main([str(run)]) == 2
    assert f"{name} must be a file of at most {limit} bytes" in capsys.readouterr().err


def test_a_table_larger_than_any_is_refused_by_its_size(run, capsys):
    sparse(run / "threshold" / "tables" / "tasks.parquet", files.FILE + 1)
    assert command.main([str(run)]) == 2
    assert f"tasks.parquet must be a file of at most {files.FILE} bytes" in capsys.readouterr().err


def test_a_folder_larger_than_any_is_refused_before_a_file_is_opened(run, capsys):
    sparse(run / "report.html", files.FOLDER + 1)
    assert command.main([str(run)]) == 2
    assert "must hold at most" in capsys.readouterr().err


def test_a_folder_of_too_many_names_is_refused(run, capsys, monkeypatch):
    monkeypatch.setattr(layout, "ENTRIES", 20)
    assert command.main([str(run)]) == 2
    assert "must hold at most 20 entries" in capsys.readouterr().err


def test_a_file_that_grows_while_it_is_read_ends_at_the_limit(tmp_path, monkeypatch):
    (tmp_path / "one").write_bytes(b"x" * 100)
    real = os.fstat
    monkeypatch.setattr(
        files.os, "fstat", lambda number: os.stat_result([*real(number)[:6], 1, *real(number)[7:]])
    )
    with pytest.raises(whorl_audit.UnreadableError, match="at most 50 bytes"):
        files.read_bytes(tmp_path / "one", 50)


DEEP = {
    "verdict.json": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "lock.json": '{"a":' + "[" * 200 + "]" * 200 + "}",
}
TOML = {
    "dots": "a" + ".a" * 50_000 + " = 1",
    "quoted dots": '"=,"' + ' . "=,"' * 20_000 + " = 1",
    "a header": "[" + "a." * 30_000 + "a]",
    "brackets": "a = " + "[" * 50_000,
    "tables": "a = " + "{a=" * 50_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_json_without_end_is_refused_by_its_depth(run, capsys, name):
    (run / "threshold" / name).write_text(DEEP[name])
    assert command.main([str(run)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"whorl_audit: {name} must be JSON, but ")
    assert said.endswith("nested deeper than 32 levels\n")


@pytest.mark.parametrize("kind", TOML)
def test_toml_without_end_is_refused_before_anything_is_built(run, capsys, kind):
    path = run / "threshold" / "design.toml"
    path.write_text(path.read_text() + "\n" + TOML[kind] + "\n")
    assert command.main([str(run)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("whorl_audit: design.toml must be TOML, but ")
    assert said.endswith("nested deeper than 32 levels\n")


@pytest.mark.parametrize(
    "text",
    [
        'a = "1.2.3"\n' * 40,
        "a = [" + "1.5, " * 100 + "]",
        "# " + "a." * 100,
        'note = """\n' + "a.b." * 100 + '"""',
    ],
)
def test_dots_in_numbers_words_and_remarks_nest_nothing(text):
    assert files._toml_depth(text) <= 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"verdict": "FAIL", "verdict": "PASS"}', "the key 'verdict' stands there twice"),
        (b'{"gates": [{"bound": 1, "bound": 2}]}', "the key 'bound' stands there twice"),
        (b'{"a": NaN}', "NaN is no JSON"),
        ('{"a": 1}'.encode("utf-16"), "must be a text in UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', "BOM"),
        (b'{"a": ' + b"9" * 5000 + b"}", "must be JSON"),
    ],
)
def test_json_that_two_readers_could_read_in_two_ways_is_refused(tmp_path, content, why):
    (tmp_path / "verdict.json").write_bytes(content)
    with pytest.raises(whorl_audit.UnreadableError, match=why) as refused:
        files.read_json(tmp_path / "verdict.json")
    assert "verdict.json" in str(refused.value)


def test_a_text_copy_with_an_endless_field_is_found(run):
    path = run / "threshold" / "tables" / "tasks.csv"
    for field in ("9" * 200_000, "9" * 1000):
        path.write_text(f"family\n{field}\n")
        forge.write_manifest(run)
        assert "tasks.csv: " in failures(run)["every CSV file says what its table says"]
    assert "no CSV table" in str(copies.fault("a\n" + "9" * 200_000, {}))


@pytest.mark.parametrize(("name", "value"), [("depths", "[1, 1]"), ("betas", "[0.0, 2.0, 0.0]")])
def test_a_parameter_that_repeats_itself_is_named(run, capsys, name, value):
    path = run / "threshold" / "design.toml"
    given = json.dumps(SMALL["threshold"][name])
    path.write_text(
        path.read_text().replace(f"{name} = {{ value = {given}", f"{name} = {{ value = {value}")
    )
    assert command.main([str(run)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"whorl_audit: {name} must be a list of different ")
    assert f"but it is {value}, in {path}" in said


def bomb(column):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"name": column}), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def test_a_small_table_of_many_cells_or_of_long_words_is_refused():
    many = pa.DictionaryArray.from_arrays(
        pa.array([0], pa.int8()).take(pa.array([0] * 1000)), ["x"]
    )
    assert files.parsed_table(bomb(many.cast(pa.string()))).num_rows == 1000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CELLS", 999)
        with pytest.raises(ValueError, match=r"1000 cells, and 100 and 999 are allowed"):
            files.parsed_table(bomb(many.cast(pa.string())))
    with pytest.raises(ValueError, match="name has a word of more than 200 letters"):
        files.parsed_table(bomb(pa.array(["x" * 201] * 5)))
    with pytest.raises(ValueError, match="columns of lists"):
        files.parsed_table(bomb(pa.array([[1.0]])))


def test_a_study_that_needs_too_much_memory_is_refused_and_not_failed(run, capsys, monkeypatch):
    def starve(*_):
        raise MemoryError

    monkeypatch.setattr(whorl_audit.values, "check", starve)
    assert command.main([str(run)]) == 2
    assert (
        f"a study must be audited in memory, but {run / 'structural'} needs more"
        in capsys.readouterr().err
    )


# --- memory, and folders that cannot be written to


def test_a_folder_that_asks_for_too_much_memory_ends_in_one_sentence(run):
    with (run / "threshold" / "tables" / "tasks.parquet").open("wb") as file:
        file.write(os.urandom(1 << 20))
        file.truncate(files.FILE)
    command = _child.python_command("-m", "whorl_audit", "--memory", "0.3", str(run))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("whorl_audit: tasks.parquet must fit into memory, but ")
    assert done.stderr.count("\n") == 1


def test_an_auditor_that_dies_is_reported_in_one_sentence(run):
    little = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))"
    script = f"{little}; import whorl_cli; sys.exit(whorl_cli.main())"
    command = [sys.executable, "-P", "-c", script, "verify", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("whorl: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_to_is_verified_all_the_same(
    run, capsys, monkeypatch, code
):
    def refuse(path, content):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(record, "_placed", refuse)
    assert command.main([str(run)]) == 0
    assert (
        f"audit.json was not written, because {run / 'structural'} cannot be written to: "
        f"{os.strerror(code)}" in capsys.readouterr().out
    )
    assert command.main([str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unwritten"].startswith("audit.json was not written")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_verified_and_said_to_be(run, capsys):
    for place in (run / "threshold", run / "structural"):
        place.chmod(0o500)
    try:
        assert whorl_cli.main(["verify", str(run)]) == 0
    finally:
        for place in (run / "threshold", run / "structural"):
            place.chmod(0o700)
    assert "audit.json was not written" in capsys.readouterr().out


def test_verify_writes_nothing_when_it_shall_not(run, capsys):
    assert whorl_cli.main(["verify", str(run), "--no-write"]) == 0
    assert not list(run.rglob("audit.json"))
    assert whorl_cli.main(["verify", str(run), "--json"]) == 0
    assert len(list(run.rglob("audit.json"))) == 2


def test_a_folder_whose_name_begins_like_an_option_is_verified(run, tmp_path, monkeypatch):
    run.rename(tmp_path / "-x")
    monkeypatch.chdir(tmp_path)
    assert whorl_cli.main(["verify", "--", "-x"]) == 0
