"""The SLURM example: on SLURM where it is installed, without it elsewhere, and over TLS."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from sweep.clusters import Cluster
from sweep.small import GRID, changed, design, files
from whorl import sweep


def environment(pytestconfig):
    root = pytestconfig.rootpath
    paths = os.pathsep.join([str(root / "src"), str(root / "tests")])
    return os.environ | {
        "PYTHON": sys.executable,
        "PYTHONPATH": paths,
        "HOST": "127.0.0.1",
        "WORKERS": "2",
        "DASK_LOGGING__DISTRIBUTED": "error",
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_batch_script_runs_a_sweep_and_leaves_nobody_behind(
    tmp_path, pytestconfig, undisturbed
):
    (tmp_path / "mine.toml").write_text(GRID)
    script = pytestconfig.rootpath / "examples" / "slurm" / "sweep.sbatch"
    command = ["bash", str(script), str(tmp_path / "mine.toml"), str(tmp_path / "out")]
    ran = subprocess.run(
        command,
        env=environment(pytestconfig),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stderr
    assert "120 cases in 4 shards" in ran.stdout
    assert files(tmp_path / "out") == undisturbed[1]
    assert (
        psutil.wait_procs(
            [one for one in psutil.process_iter() if str(tmp_path) in " ".join(_line(one))],
            timeout=60,
        )[1]
        == []
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_a_batch_script_that_is_ended_leaves_nobody_behind_and_goes_on_at_once(
    tmp_path, pytestconfig, name
):
    made = changed(GRID, trials=40, epochs=100)
    (tmp_path / "mine.toml").write_text(made)
    script = pytestconfig.rootpath / "examples" / "slurm" / "sweep.sbatch"
    command = ["bash", str(script), str(tmp_path / "mine.toml"), str(tmp_path / "out")]
    first = subprocess.Popen(
        command, env=environment(pytestconfig), cwd=tmp_path, start_new_session=True
    )
    while not list(tmp_path.glob("out/shards/*.parquet")) and first.poll() is None:
        time.sleep(0.1)
    below = psutil.Process(first.pid).children(recursive=True)
    assert len(below) >= 6  # scheduler, nanny, two workers, client, and what ends them all
    first.send_signal(getattr(signal, name))  # the script alone
    second = subprocess.Popen(
        command, env=environment(pytestconfig), cwd=tmp_path, start_new_session=True
    )
    try:
        assert psutil.wait_procs(below, timeout=60)[1] == []
        assert first.wait() == {"SIGKILL": -9, "SIGTERM": 143, "SIGHUP": 129}[name]
        assert second.wait() == 0
    finally:
        for one in below:
            with contextlib.suppress(psutil.Error):
                one.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(second.pid, signal.SIGTERM)
        second.wait()
    assert len(files(tmp_path / "out")) == sweep.Plan(sweep.parse(made.encode())).shards
    assert not list((tmp_path / "out" / "shards").glob(".*"))
    assert not list((tmp_path / "out.dask").glob("*.json"))


SRUN = """#!/bin/bash
echo $$ > workers.pid
shift  # --kill-on-bad-exit=0
exec "$@"
"""
SCONTROL = """#!/bin/bash
echo "$@" > asked
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("restarts", "asked"), [(None, "requeue 17\n"), ("3", None)])
def test_a_job_whose_workers_all_end_fails_and_asks_to_be_started_again(
    tmp_path, pytestconfig, restarts, asked
):
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "mine.toml").write_text(changed(GRID, trials=400, epochs=400))
    script = pytestconfig.rootpath / "examples" / "slurm" / "sweep.sbatch"
    told = {"SLURM_JOB_ID": "17", "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    job = subprocess.Popen(
        ["bash", str(script), "mine.toml", "out"],
        env=environment(pytestconfig)
        | told
        | ({} if restarts is None else {"SLURM_RESTART_COUNT": restarts}),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob("out/shards/*.parquet")) and job.poll() is None:
        time.sleep(0.1)
    os.kill(int((tmp_path / "workers.pid").read_text()), signal.SIGKILL)
    errors = job.communicate(timeout=120)[1]
    assert job.returncode == 1
    assert "all workers or the scheduler have ended before the sweep was done" in errors
    there = tmp_path / "asked"
    assert (there.read_text() if there.exists() else None) == asked


def slurm(*command):
    """What a command of SLURM says; where SLURM is not installed or not running, why."""
    if shutil.which("sbatch") is None:
        pytest.skip("needs SLURM (sbatch) on this machine")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip(f"needs a SLURM that runs, but {command[0]} says: {done.stderr.strip()}")
    return done.stdout


def until(holds, job):
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end, slurm("scontrol", "show", "job", job)
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_on_slurm_a_job_that_lost_its_workers_is_started_again_and_comes_to_the_same_files(
    tmp_path, pytestconfig, monkeypatch
):
    slurm("sinfo", "--noheader")
    made = changed(GRID, trials=200, epochs=200)
    (tmp_path / "mine.toml").write_text(made)
    for name, value in environment(pytestconfig).items():
        monkeypatch.setenv(name, value)
    where = ["--chdir", str(tmp_path), "--output", str(tmp_path / "job.out"), "--open-mode=append"]
    size = ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1", "--gpus-per-task=0"]
    script = pytestconfig.rootpath / "examples" / "slurm" / "sweep.sbatch"
    job = slurm("sbatch", "--parsable", *where, *size, str(script), "mine.toml", "out").strip()

    def said(what):
        return f" {what} " in slurm("scontrol", "--oneliner", "show", "job", job)

    try:
        until(lambda: list(tmp_path.glob("out/shards/*.parquet")), job)
        slurm("scancel", f"{job}.0")  # its workers, and nothing else of it
        until(lambda: said("Restarts=1") and said("JobState=PENDING"), job)
        assert "all workers or the scheduler have ended" in (tmp_path / "job.out").read_text()
        slurm("scontrol", "update", f"JobId={job}", "StartTime=now")  # not two minutes later
        until(lambda: said("JobState=COMPLETED"), job)
    finally:
        subprocess.run(["scancel", job], check=False)
    sweep.sweep(sweep.parse(made.encode()), tmp_path / "local")
    assert files(tmp_path / "out") == files(tmp_path / "local")


def _line(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a key")
def test_a_cluster_that_speaks_tls(tmp_path, monkeypatch, undisturbed):
    key, certificate = tmp_path / "dask.key", tmp_path / "dask.crt"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=whorl",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(made, check=True, capture_output=True)
    from distributed import Security

    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION", "true")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__DEFAULT_SCHEME", "tls")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TLS__CA_FILE", str(certificate))
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT", str(certificate))
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY", str(key))
    hands = Cluster(tmp_path, 2)
    security = Security(
        tls_ca_file=str(certificate),
        tls_client_cert=str(certificate),
        tls_client_key=str(key),
        require_encryption=True,
    )
    try:
        hands.start()
        done = sweep.sweep(
            design(),
            tmp_path / "secret",
            engine=sweep.Cluster(scheduler_file=hands.file, security=security),
        )
        assert "tls://" in hands.file.read_text()
    finally:
        hands.end()
        hands.log.close()
    assert done.failed == 0
    assert files(tmp_path / "secret") == undisturbed[1]
