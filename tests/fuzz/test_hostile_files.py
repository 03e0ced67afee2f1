"""Small hostile files are refused in one sentence, within seconds and a gigabyte."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from fuzz import hostile, tables
from fuzz.doors import ends_well, sentence
from whorl import measured, regress
from whorl.ground.tables import Table

SECONDS, MEMORY = 5.0, 1 << 30
# Reads every file in both ways, and says what came of it, how long it took and how much memory this
# process has had until then.
READ = """import json, sys, time
from whorl import measured, regress
for path in sys.argv[1:]:
    said, begun = [], time.process_time()
    for read in (measured.read, lambda path: regress.read(path, path)):
        try:
            said.append(read(path) and None)
        except ValueError as why:
            said.append(str(why))
    status = open("/proc/self/status").read()  # what getrusage tells includes the parent's memory
    used = int(status.split("VmHWM:")[1].split()[0]) * 1024
    print(json.dumps([said, time.process_time() - begun, used]))
"""


# Those that unpack to far more than they are take seconds each.
PACKED = ("empty lines", "nothing but empty lines", "many rows", "comments")
PACKED += ("many lines of JSON", "almost as many lines of JSON", "a new name in every line")
PACKED += ("one long list", "a huge archive", "a wide archive", "a long archive")
PACKED += ("Parquet that repeats a number", "Parquet that repeats a text", "gzip in gzip")


def heard(folder, names):
    """What the library says of files: sentences, seconds and memory."""
    paths = [folder / str(number) for number in range(len(names))]
    for path, name in zip(paths, names, strict=True):
        path.write_bytes(hostile.FILES[name]())
        assert path.stat().st_size < 1_000_000
    answer = subprocess.run(
        [sys.executable, "-c", READ, *map(str, paths)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert answer.stderr == ""
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    return dict(zip(names, zip(paths, found, strict=True), strict=True))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    names = [name for name in hostile.FILES if name not in PACKED]
    return heard(tmp_path_factory.mktemp("hostile"), names)


@pytest.fixture(scope="module")
def told_of_packed(tmp_path_factory):
    return heard(tmp_path_factory.mktemp("packed"), PACKED)


def is_refused(path, answer):
    sentences, seconds, memory = answer
    assert any(sentences)
    for said in filter(None, sentences):
        assert str(path) in said
        sentence(said)
    assert seconds < 2 * SECONDS  # of two readings
    assert memory < MEMORY


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PACKED)
def test_a_packed_file_is_refused_in_one_sentence_within_seconds(name, told_of_packed):
    is_refused(*told_of_packed[name])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", [name for name in hostile.FILES if name not in PACKED])
def test_a_hostile_file_is_refused_in_one_sentence_within_seconds(name, told):
    is_refused(*told[name])


def test_a_file_that_aborts_arrow_does_not_end_the_command(tmp_path):
    path = tmp_path / "mine.parquet"
    path.write_bytes(hostile.FILES["Parquet that aborts Arrow"]())
    command = [sys.executable, "-P", "-m", "whorl", "certify", str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    said = f"whorl: {path}: the file must be a whole Parquet file, but a part of it is damaged\n"
    assert (answer.returncode, answer.stdout, answer.stderr) == (2, "", said)


@pytest.mark.parametrize("signal_", [signal.SIGABRT, signal.SIGSEGV])
def test_a_reader_that_a_file_ends_is_a_refusal_of_the_file(signal_, tmp_path):
    path = tmp_path / "mine"
    path.write_bytes(tables.parquet(tables.sound()))
    table = Table(path)
    table._form._child.send_signal(signal_)
    with pytest.raises(ValueError, match="must be whole, but a part of it is damaged"):
        table.columns(["residual_1"], [])


@pytest.mark.parametrize("kind", ["parquet", "npz", "gzip", "packed parquet"])
def test_a_file_with_changed_bytes_is_read_or_refused(fuzz, kind, tmp_path):
    columns = tables.sound(12, 3)
    whole = {
        "parquet": tables.parquet(columns),
        "npz": hostile.archive(**columns),
        "gzip": gzip.compress(tables.csv(columns).encode()),
        "packed parquet": gzip.compress(tables.parquet(columns)),
    }[kind]
    path = tmp_path / "mine"

    def read(seed_and_many):
        path.write_bytes(hostile.flipped(whole, *seed_and_many))
        return ends_well(measured.read, path) and ends_well(regress.read, path, path)

    fuzz(st.tuples(st.integers(0, 10**6), st.integers(1, 3)), read)


def test_an_archive_of_the_other_byte_order_is_read(tmp_path):
    columns = tables.sound()
    swapped = {name: values.astype(">f8") for name, values in columns.items()}
    for name, arrays in (("little", columns), ("big", swapped)):
        (tmp_path / name).write_bytes(hostile.archive(**arrays))
    little, big = (measured.read(tmp_path / name) for name in ("little", "big"))
    np.testing.assert_array_equal(big.records[""].moments.second, little.records[""].moments.second)


def test_columns_that_are_not_needed_may_hold_anything(tmp_path):
    columns = {name: values.tolist() for name, values in tables.sound().items()}
    more = {"list": [[1.0]] * 14, "structure": [{"x": 1}] * 14}
    (tmp_path / "parquet").write_bytes(tables.parquet(columns | more))
    rows = zip(*(columns | more).values(), strict=True)
    named = [dict(zip([*columns, *more], row, strict=True)) for row in rows]
    (tmp_path / "json").write_bytes(hostile.lines(*named))
    for name in ("parquet", "json"):
        assert measured.read(tmp_path / name).rows == 14


def test_json_lines_are_refused_with_their_line(tmp_path):
    path = tmp_path / "mine"
    columns = tables.sound()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = [{name: float(value) for name, value in row.items()} for row in rows]
    rows[5]["velocity_2"] = {"mean": 1}
    path.write_bytes(b"\n\n" + hostile.lines(*rows))
    with pytest.raises(ValueError, match=r"mine, line 8, column velocity_2: every value must be"):
        measured.read(path)


def test_lines_are_counted_in_the_file_where_rows_before_were_left_out(tmp_path):
    lines = tables.csv(tables.sound() | {"uncertainty": np.ones(14)}).splitlines()
    lines[3] = "," + lines[3].partition(",")[2]
    lines[9] = lines[9].rpartition(",")[0] + ",inf"
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line (4|10), column"):
        measured.read(tmp_path / "mine.csv")


def test_a_folder_and_a_pipe_are_refused_in_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, kind in ((tmp_path, "a folder"), (tmp_path / "pipe", "no regular file")):
        with pytest.raises(ValueError, match=f"must be a table file, but it is {kind}"):
            measured.read(path)


def test_a_file_of_the_current_folder_is_not_imported_by_the_reader(tmp_path, monkeypatch):
    for name in ("pyarrow", "numpy", "json", "contextlib"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    (tmp_path / "mine").write_bytes(tables.parquet(tables.sound()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")
    assert measured.read("mine").rows == 14


def test_the_reader_of_parquet_ends_with_its_table_and_with_its_process(tmp_path):
    path = tmp_path / "mine"
    path.write_bytes(tables.parquet(tables.sound()))
    table = Table(path)
    child = table._form._child
    assert child.poll() is None
    del table
    assert child.poll() is not None
    script = (
        "import os, sys; from whorl.ground.tables import Table; table = Table(sys.argv[1]); "
        "print(table._form._child.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    end = time.monotonic() + 30
    while Path(f"/proc/{int(answer.stdout)}/cmdline").exists() and time.monotonic() < end:
        if not Path(f"/proc/{int(answer.stdout)}/cmdline").read_bytes():
            break  # it ended, and waits for its parent to take notice
        time.sleep(0.05)
    else:
        assert time.monotonic() < end


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")
def test_a_killed_command_leaves_no_copy_of_its_file(tmp_path):
    (tmp_path / "tmp").mkdir()
    path = tmp_path / "mine.csv.gz"
    text = "# remark\n" + tables.csv(tables.sound(12, 3)).replace("\n", "\n# remark\n")
    path.write_bytes(gzip.compress(text.encode("utf-16")))
    script = (
        "import os, sys, signal; from whorl import measured; "
        "measured.read(sys.argv[1]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    answer = subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False)
    assert answer.returncode == -signal.SIGKILL
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_path_that_is_no_text_is_read_and_named(tmp_path):
    for content, end in ((tables.parquet(tables.sound()), ""), (b"a,b\n", "mine")):
        path = os.fsdecode(os.fsencode(tmp_path) + b"/m\xff" + end.encode())
        Path(path).write_bytes(content)
    assert measured.read(path.removesuffix("mine")).rows == 14
    with pytest.raises(ValueError, match="residual_1") as refused:
        measured.read(path)
    str(refused.value).encode()


def test_too_little_memory_is_not_blamed_on_the_file(tmp_path):
    path = tmp_path / "mine"
    path.write_bytes(tables.parquet(tables.sound()))
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 36,) * 2); "
    script = limit + (
        "import sys; from whorl.ground import source; source.MEMORY = 1 << 60; "
        "from whorl import measured; measured.read(sys.argv[1])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert answer.stderr.splitlines()[-1].startswith("MemoryError: the process that reads the file")


def test_a_large_text_is_read_in_this_process_and_parquet_in_pieces(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"{role}_{k}" for role in ("residual", "velocity") for k in (1, 2, 3)]
    columns = {name: rng.standard_normal(200_000) for name in names}
    (tmp_path / "a.csv").write_bytes(tables.csv(columns).encode())
    file = io.BytesIO()
    pq.write_table(tables.pa.table(columns), file)
    (tmp_path / "a.parquet").write_bytes(file.getvalue())
    text, binary = (Table(tmp_path / f"a.{kind}").columns(names, []) for kind in ("csv", "parquet"))
    for name in names:
        np.testing.assert_array_equal(text[name], binary[name])
        np.testing.assert_array_equal(text[name], columns[name])
