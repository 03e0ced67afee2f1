"""The same answer everywhere, byte for byte, and after every fault."""

import contextlib
import os
import signal
import threading
import time

import jax
import psutil
import pytest

from sweep.clusters import cluster, killing
from sweep.small import design, files
from whorl import sweep
from whorl.ground.engines import Strikes

SLOWED = "sweep.faults:train"


def own_workers():
    """The processes of a pool of this process, but for those that were killed and not yet
    buried.
    """
    found = []
    for one in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "spawn_main" in " ".join(one.cmdline()):
                found.append(one)
    return found


def lean():
    """One compiled shape in four shards, since every worker has to load each shape by itself."""
    return design(policy='"adaptive"', shard=15)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The files of one process."""
    folder = tmp_path_factory.mktemp("alone") / "sweep"
    assert sweep.sweep(lean(), folder).failed == 0
    return files(folder)


def test_a_notebook_in_single_precision_gets_the_same_files(alone, tmp_path):
    with jax.enable_x64(False):
        assert sweep.sweep(lean(), tmp_path / "sweep").failed == 0
    assert files(tmp_path / "sweep") == alone


def numbers(seen):
    return sorted(report.number for report in seen)


@pytest.mark.slow
def test_two_processes_give_the_files_of_one_and_survive_a_kill(alone, tmp_path, monkeypatch):
    monkeypatch.setenv("WHORL_FAULT_SLOW", "0.5")
    seen, killed = [], []

    def progress(report):
        seen.append(report)
        if not killed:  # the other one is at work on a shard now
            killed.append(own_workers()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    done = sweep.sweep(
        lean(), tmp_path / "two", engine=sweep.Processes(2), train=SLOWED, progress=progress
    )
    assert (done.failed, numbers(seen)) == (0, [0, 1, 2, 3])
    assert killed
    assert files(tmp_path / "two") == alone


@pytest.mark.slow
def test_four_workers_of_a_cluster_give_the_files_of_one_process(alone, tmp_path):
    seen = []
    with cluster(
        tmp_path, 4, "--no-nanny"
    ) as made:  # which restarts workers, and costs four more processes
        engine = sweep.Cluster(scheduler_file=made.file)
        done = sweep.sweep(lean(), tmp_path / "four", engine=engine, progress=seen.append)
    assert (done.failed, done.computed, numbers(seen)) == (0, 4, [0, 1, 2, 3])
    assert files(tmp_path / "four") == alone


def test_devices_give_the_files_of_one_process(alone, tmp_path):
    engine = sweep.Devices(jax.devices() * 2)
    assert sweep.sweep(lean(), tmp_path / "devices", engine=engine).failed == 0
    assert files(tmp_path / "devices") == alone
    with pytest.raises(
        ValueError,
        match="limit must be left out on devices of this process, which cannot be taken back, but it is 3",
    ):
        sweep.sweep(design(seed=1), tmp_path / "limited", engine=engine, limit=3.0)


def test_a_shard_that_nobody_survives_is_rows_with_a_reason(tmp_path):
    strikes = Strikes(2)
    assert [strikes.against(3), strikes.against(3)] == [False, True]
    work = sweep.run.Work(design().text, str(tmp_path / "lost"))
    sweep.Store.enter(tmp_path / "lost", design())
    assert work.give_up(1, strikes.reason(3)).failed == 10
    rows = sweep.scan(tmp_path / "lost").collect()
    assert set(rows["reason"]) == {"the worker ended 2 times in a row without a result"}
    assert rows["case"].to_list() == list(range(50, 60))


@pytest.mark.usefixtures("as_users_call_it")
def test_a_cluster_needs_one_place_to_look(tmp_path):
    with pytest.raises(
        ValueError, match="a cluster must have an address or a scheduler file, but it has neither"
    ):
        sweep.Cluster()
    with pytest.raises(
        ValueError, match="workers must be a whole number of at least 1, but it is 0"
    ):
        sweep.Processes(0)
    engine = sweep.Cluster(scheduler_file=tmp_path / "none.json", patience=0.1)
    with pytest.raises(
        ValueError, match=r"scheduler must answer at .*none\.json, but it did not for 0\.1 s"
    ):
        sweep.sweep(design(), tmp_path / "out", engine=engine)


def swept(made, folder, engine, seen):
    """A sweep on another thread, and how to see that it is over."""
    found = []

    def work():
        found.append(sweep.sweep(made, folder, engine=engine, train=SLOWED, progress=seen.append))

    thread = threading.Thread(target=work)
    thread.start()
    return thread, found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_without_workers_is_waited_for_and_says_so(alone, tmp_path, monkeypatch):
    monkeypatch.setattr("whorl.ground.engines.cluster.LONELY", 0.5)
    with cluster(tmp_path, 0) as hands:
        late = threading.Timer(4.0, lambda: hands.processes.append(hands.worker()))
        late.start()
        with pytest.warns(
            RuntimeWarning,
            match="a sweep must have workers, but none is connected to the scheduler: it waits for one",
        ):
            done = sweep.sweep(
                lean(), tmp_path / "late", engine=sweep.Cluster(scheduler_file=hands.file)
            )
    assert done.failed == 0
    assert files(tmp_path / "late") == alone


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("kind", ["processes", "cluster"])
def test_fifty_kills_in_one_sweep_change_nothing(tmp_path, monkeypatch, kind):
    made = design(trials=25, shard=5)  # 120 shards
    sweep.sweep(made, tmp_path / "whole")
    monkeypatch.setenv("WHORL_FAULT_SLOW", "2.0")
    seen = []
    with cluster(tmp_path, 4 if kind == "cluster" else 0) as hands:
        engine = (
            sweep.Cluster(scheduler_file=hands.file)
            if kind == "cluster"
            else sweep.Processes(2, tries=50)
        )
        thread, found = swept(made, tmp_path / "killed", engine, seen)
        kills = killing(
            hands.worker_processes if kind == "cluster" else own_workers,
            50,
            7,
            lambda: not thread.is_alive(),
        )
        thread.join()
    assert kills == 50
    assert found[0].failed == 0
    assert numbers(seen) == list(range(found[0].shards))
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_restarted_scheduler_loses_nothing(tmp_path, monkeypatch):
    made = design(shard=2)  # 60 shards
    sweep.sweep(made, tmp_path / "whole")
    monkeypatch.setenv("WHORL_FAULT_SLOW", "0.3")
    seen = []
    with cluster(tmp_path, 2) as hands:
        thread, found = swept(
            made, tmp_path / "restarted", sweep.Cluster(scheduler_file=hands.file), seen
        )
        for restarts in (1, 2):
            while len(seen) < 15 * restarts and thread.is_alive():
                time.sleep(0.1)
            assert thread.is_alive()
            hands.end()  # SIGKILL for the scheduler and for all workers
            hands.start()
        thread.join()
    assert found[0].failed == 0
    assert numbers(seen) == list(range(60))
    assert files(tmp_path / "restarted") == files(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:a sweep must have workers")
def test_a_scheduler_that_was_left_behind_without_workers_is_left_for_the_one_in_the_file(
    alone, tmp_path, monkeypatch
):
    monkeypatch.setattr("whorl.ground.engines.cluster.LONELY", 0.5)
    with cluster(tmp_path, 0) as hands:
        behind = hands.processes[0]
        thread, found = swept(
            lean(), tmp_path / "moved", sweep.Cluster(scheduler_file=hands.file), []
        )
        try:
            while not list(tmp_path.glob("moved/design.toml")) or not hands.file.exists():
                time.sleep(0.1)
            time.sleep(5.0)  # the sweep has found it, and waits for workers
            hands.workers = 1
            hands.start()  # another scheduler, under the same file
            thread.join()
        finally:
            behind.kill()
            behind.wait()
    assert found[0].failed == 0
    assert files(tmp_path / "moved") == alone
