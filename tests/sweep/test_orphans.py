"""Nobody is left behind.

Every process of a sweep ends with the one that started it, whatever ends that one.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from sweep.faults import Asleep, Looked
from sweep.small import GRID, changed, design
from whorl import sweep
from whorl.ground.engines import processes
from whorl.sweep import child

ROOT = Path(__file__).parents[2]
WHORL = Path(sys.executable).with_name("whorl")
LONG = changed(GRID, trials=2000, epochs=200)
SECONDS = 30.0  # until nobody is left: a moment on a machine that is not busy


SLEEPING = """
if __name__ == "__main__":
    from sweep.faults import Asleep
    from whorl import sweep
    list(sweep.Processes(2).run(Asleep(), range(4)))
"""
CLUSTER = """
import sys
from distributed import LocalCluster
from sweep.small import design
from whorl import sweep
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as made:
        engine = sweep.Cluster(made.scheduler_address)
        sweep.sweep(design(), sys.argv[1], engine=engine, limit=600.0, train="sweep.faults:train")
"""


def paths():
    return os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])


@contextlib.contextmanager
def started(command, tmp_path, children):
    """A process with its own folder for temporary files, and all processes below it as soon as they
    are so many.
    """
    (tmp_path / "temporary").mkdir(exist_ok=True)
    left_out = ("JAX_COMPILATION_CACHE_DIR",)  # so that the folder for compiled programs is used
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {
        "TMPDIR": str(tmp_path / "temporary"),
        "PYTHONPATH": paths(),
        "WHORL_FAULT_SLOW": "600",
    }
    parent = subprocess.Popen(
        [str(word) for word in command],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    below = []
    try:
        while len(below) < children or (not children and not list(tmp_path.glob("out/shards/*"))):
            assert parent.poll() is None, parent.communicate()[1]
            below = psutil.Process(parent.pid).children(recursive=True)
            time.sleep(0.02)
        yield parent, below
    finally:
        for one in [parent, *below]:
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                one.kill()
        parent.communicate()


def survivors(below):
    return psutil.wait_procs(below, timeout=SECONDS)[1]


def folders(tmp_path):
    return list((tmp_path / "temporary").glob("whorl-compiled-*"))


def test_workers_end_with_a_killed_parent_and_the_next_run_removes_its_folder(
    tmp_path, monkeypatch
):
    (tmp_path / "asleep.py").write_text(SLEEPING)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with started([sys.executable, tmp_path / "asleep.py"], tmp_path, 3) as (parent, below):
        assert len(folders(tmp_path)) == 1
        processes.tidy()
        assert len(folders(tmp_path)) == 1  # its owner is alive
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert survivors(below) == []
    assert len(folders(tmp_path)) == 1
    processes.tidy()
    assert folders(tmp_path) == []


def test_the_folder_of_another_machine_or_of_nobody_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("elsewhere.7-abc", "mine", f"x.{'9' * 30}-abc"):
        (tmp_path / f"whorl-compiled-{name}").mkdir()
    processes.tidy()
    assert len(list(tmp_path.iterdir())) == 3


def test_who_stops_listening_does_not_wait_for_what_is_under_way(monkeypatch):
    at_work = sweep.Processes(2).run(Asleep(), range(4))
    waiting = []

    def stop(running, **_):
        waiting.extend(psutil.Process().children())
        raise KeyboardInterrupt

    monkeypatch.setattr(processes, "wait", stop)
    with pytest.raises(KeyboardInterrupt):
        next(at_work)
    workers = [
        one for one in waiting if not one.is_running() or "spawn_main" in " ".join(one.cmdline())
    ]
    assert len(workers) >= 2
    assert survivors(workers) == []


TRAPS = (
    "csv",
    "multiprocessing",
    "numpy",
    "pickle",
    "random",
    "runpy",
    "selectors",
    "signal",
    "struct",
    "tempfile",
    "jax",
)


@pytest.fixture
def trapped(tmp_path, monkeypatch):
    """A current folder whose modules have the names of others, and a function that says which were
    imported.
    """
    for name in TRAPS:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / name)!r}, 'w')\nraise ImportError('a trap')\n"
        )
    monkeypatch.chdir(tmp_path)
    return lambda: [name for name in TRAPS if (tmp_path / name).exists()]


def test_workers_import_nothing_from_the_current_folder(trapped, monkeypatch):
    monkeypatch.setattr(
        sys, "path", [path for path in sys.path if path not in ("", str(Path.cwd()))]
    )
    assert list(sweep.Processes(1).run(Looked(), [0])) == [False]
    assert trapped() == []


def test_the_child_that_can_be_ended_imports_nothing_from_the_current_folder(trapped):
    with contextlib.closing(contextlib.ExitStack()) as stack:
        asked = child.Child()
        stack.callback(asked.end)
        with pytest.raises(TypeError):
            asked.ask(("no such question",), 200.0)
    assert trapped() == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "engine", [[], ["--limit", "600"], ["--engine", "processes", "--workers", "2"]]
)
def test_a_command_imports_nothing_from_the_current_folder(trapped, tmp_path, engine):
    (tmp_path / "mine.toml").write_text(GRID)
    command = [WHORL, "sweep", "mine.toml", "--out", "out", *engine]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, trapped()) == (0, []), ran.stderr


COMMANDS = {  # with the number of processes below each
    "local": (["sweep", "long.toml", "--out", "out"], 0),
    "limited": (["sweep", "long.toml", "--out", "out", "--limit", "600"], 1),
    "processes": (
        ["sweep", "long.toml", "--out", "out", "--engine", "processes", "--workers", "2"],
        3,
    ),
    "limited processes": (
        [
            "sweep",
            "long.toml",
            "--out",
            "out",
            "--engine",
            "processes",
            "--workers",
            "2",
            "--limit",
            "600",
        ],
        5,
    ),
    "replicate": (
        ["replicate", "horizon", "--seeds", "5000", "--out", "out.parquet", "--workers", "2"],
        3,
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGINT"])
@pytest.mark.parametrize("engine", COMMANDS)
def test_every_signal_ends_every_process_of_every_engine(
    complaints, tmp_path, monkeypatch, engine, name
):
    arguments, children = COMMANDS[engine]
    (tmp_path / "long.toml").write_text(LONG)
    with started([WHORL, *arguments], tmp_path, children) as (parent, below):
        time.sleep(2.0)  # some are at work, and some are starting
        below = psutil.Process(parent.pid).children(recursive=True)
        number = getattr(signal, name)
        (os.killpg if name == "SIGINT" else os.kill)(
            parent.pid, number
        )  # a terminal sends Ctrl-C to all of them
        error = parent.communicate(timeout=SECONDS)[1]
        assert survivors(below) == []
    if name in ("SIGTERM", "SIGHUP"):
        assert parent.returncode == 128 + number
        words = f"whorl: ended by {name}; what was finished is kept, and the same command goes on from there\n"
        assert complaints(error) == words
    if name in ("SIGTERM", "SIGHUP", "SIGINT"):
        assert folders(tmp_path) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    sweep.sweep(design(), tmp_path / "next")
    assert folders(tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGQUIT", "SIGKILL"])
def test_a_cluster_on_this_machine_ends_with_its_parent(tmp_path, name):
    (tmp_path / "cluster.py").write_text(CLUSTER)
    with started([sys.executable, tmp_path / "cluster.py", tmp_path / "out"], tmp_path, 5) as (
        parent,
        _,
    ):
        time.sleep(2.0)
        below = psutil.Process(parent.pid).children(
            recursive=True
        )  # two workers, what they compute in, and the tracker
        parent.send_signal(getattr(signal, name))
        parent.communicate(timeout=SECONDS)
        assert survivors(below) == []


@pytest.mark.slow
def test_a_command_that_shall_ignore_a_hangup_ignores_it(tmp_path):
    (tmp_path / "long.toml").write_text(LONG)
    with started(["nohup", WHORL, *COMMANDS["local"][0]], tmp_path, 0) as (parent, _):
        parent.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            parent.wait(3.0)
