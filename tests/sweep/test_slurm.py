"""The SLURM example, as far as a machine without SLURM can run it; and the same over TLS."""

import os
import shutil
import subprocess
import sys

import psutil
import pytest

from sweep.clusters import Cluster
from sweep.small import GRID, design, files
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
def test_the_batch_script_runs_a_sweep_and_leaves_nobody_behind(tmp_path, pytestconfig, undisturbed):
    (tmp_path / "mine.toml").write_text(GRID)
    script = pytestconfig.rootpath / "examples" / "slurm" / "sweep.sbatch"
    command = ["bash", str(script), str(tmp_path / "mine.toml"), str(tmp_path / "out")]
    ran = subprocess.run(command, env=environment(pytestconfig), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "120 cases in 4 shards" in ran.stdout
    assert files(tmp_path / "out") == undisturbed[1]
    assert psutil.wait_procs([one for one in psutil.process_iter() if str(tmp_path) in " ".join(_line(one))], timeout=60)[1] == []


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
    security = Security(tls_ca_file=str(certificate), tls_client_cert=str(certificate), tls_client_key=str(key), require_encryption=True)
    try:
        hands.start()
        done = sweep.sweep(design(), tmp_path / "secret", engine=sweep.Cluster(scheduler_file=hands.file, security=security))
        assert "tls://" in hands.file.read_text()
    finally:
        hands.end()
        hands.log.close()
    assert done.failed == 0
    assert files(tmp_path / "secret") == undisturbed[1]
