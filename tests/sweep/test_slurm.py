"""The SLURM example, as far as a machine without SLURM can run it; and the same over TLS."""

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
    assert len(below) >= 6  # a scheduler, two nannies, two workers and the client
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
