"""Killed for real, at any moment, a run is finished by the same command and ends with the same
bytes.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from study.small import text
from study.trouble import contents
from sweep.small import GRID

SUICIDE = """
import os, signal, sys, whorl_cli
left, real = int(sys.argv.pop()), os.replace
def replace(source, target):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
os.replace = replace
sys.exit(whorl_cli.main())
"""


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("bare")
def test_a_run_that_is_killed_in_the_middle_of_a_write_is_finished_by_the_next(
    copied, process, whorl, tables_of
):
    before = tables_of("runs/mine")
    killed = process("run", copied / "mine.toml", "--out", copied / "again", "7", script=SUICIDE)
    words = killed.communicate()[1]
    assert killed.returncode == 128 + signal.SIGKILL  # of the worker; the supervisor reports it
    assert "whorl: ended by SIGKILL, as a system does when memory runs out; what was" in words
    left = contents(copied / "again")
    assert [name for name in left if name.endswith(".part")]
    assert "mine/verdict.json" not in left
    assert whorl("run", "mine.toml", "--out", "again")[0] == 0
    assert tables_of("again") == before
    assert not [name for name in contents(Path("again")) if name.endswith((".part", ".npz"))]


KILLED_AT = """
import os, signal, sys, whorl_cli
name, real = sys.argv.pop(), os.replace
def replace(source, target):
    if os.path.basename(target).endswith(name):
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
os.replace = replace
sys.exit(whorl_cli.main())
"""


def hidden(home):
    return [name for name in contents(home) if Path(name).name.startswith(".")]


@pytest.mark.parametrize(
    ("words", "at"),
    [
        (("replicate", "mine.toml", "--seeds", "2", "--out", "seeds.parquet"), "seeds.parquet"),
        (("register", "mine.toml"), "mine.lock.json"),
        (("report", "runs/mine", "--unverified"), "report.html"),
        (("sweep", "many.toml", "--out", "./many"), ".parquet"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_a_command_that_is_killed_in_the_middle_of_a_write_leaves_nothing_after_the_next(
    copied, process, words, at
):
    (copied / "many.toml").write_text(GRID)
    words = [copied / word if "." in word or "/" in word else word for word in words]
    killed = process(*words, at, script=KILLED_AT)
    killed.communicate()
    assert killed.returncode == 128 + signal.SIGKILL  # of the worker, as its parent says
    assert len(hidden(copied)) == 1
    again = process(*words)
    assert (again.communicate()[1].count("Traceback"), again.returncode) == (0, 0)
    assert hidden(copied) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_starts_into_one_folder_at_once_end_with_the_same_bytes(
    copied, process, complaints, tables_of
):
    before = tables_of(copied / "runs" / "mine")
    for number in range(3):
        folder = copied / f"both{number}"
        both = [process("run", copied / "mine.toml", "--out", folder) for _ in range(2)]
        ended = [(complaints(one.communicate()[1]), one.returncode) for one in both]
        assert ended == [("", 0), ("", 0)]
        assert tables_of(folder) == before
        assert not [name for name in contents(folder) if name.endswith((".part", ".npz"))]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_that_is_killed_at_25_random_moments_ends_with_the_same_bytes(
    tmp_path, process, tables_of
):
    design = tmp_path / "mine.toml"
    design.write_text(
        text(
            depths=[2, 1, 4],
            families=6,
            betas=[0.0, 2.0, 8.0],
            resamples=2000,
            gates=[("auc", ">", 0)],
        )
    )

    def start(folder):
        return process("run", design, "--out", folder, "--json", start_new_session=True)

    begun = time.monotonic()
    whole = start(tmp_path / "whole")
    assert whole.communicate()[1] == ""
    assert whole.returncode == 0
    reference = tables_of(tmp_path / "whole")
    begun = time.monotonic()
    again = start(tmp_path / "whole again")
    again.communicate()
    length = time.monotonic() - begun
    assert tables_of(tmp_path / "whole again") == reference

    rng, kills, finished, folder = random.Random(25), 0, 0, 0
    while kills < 25:
        place = tmp_path / f"killed{folder}"
        run = start(place)
        # Half of the kills come while files are written, which is a small part of the time that
        # Python takes to start.
        if kills % 2:
            while not place.exists() and run.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.4) * length)
        else:
            time.sleep(rng.uniform(0, 1) * length)
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)  # with the audit that it may have begun
            kills += 1
        run.communicate()
        if run.returncode == 0:
            assert tables_of(place) == reference
            finished += 1
            folder += 1
        else:
            assert run.returncode == -signal.SIGKILL
    last = tmp_path / f"killed{folder}"
    run = start(last)
    assert run.communicate()[1] == ""
    assert run.returncode == 0
    assert tables_of(last) == reference
    assert contents(last).keys() == contents(tmp_path / "whole").keys()
