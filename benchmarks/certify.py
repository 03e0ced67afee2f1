"""How long does `whorl certify` take on a large table, and how much memory beyond what Python and
its packages need?

A reciprocal and a turning loop of thirty outputs are measured a million times each, with noise, and
written to CSV and Parquet. Each reading runs in a fresh process; memory is the rise of its resident
peak over what it held when all packages were imported (Linux only).

    python benchmarks/certify.py                  # about two minutes on two cores
    python benchmarks/certify.py --rows 100000    # a quick look
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import timing

CHILD = "import certify, json, sys; print(json.dumps(certify.judged(sys.argv[1])))"
HERE = pathlib.Path(__file__).parent


def table(rows, outputs, turn, seed=0):
    """Measurements of a loop with a skew part of the given size."""
    rng = np.random.default_rng(seed)
    centre = np.eye(outputs) - 1 / outputs
    mixed = rng.standard_normal((outputs, outputs))
    skew = centre @ (mixed - mixed.T) @ centre
    loop = centre @ np.diag(np.linspace(0.5, 2.0, outputs)) @ centre
    loop = loop + turn * np.linalg.norm(loop) / np.linalg.norm(skew) * skew
    residual = rng.standard_normal((rows, outputs)) @ centre
    velocity = residual @ loop.T + 0.5 * rng.standard_normal((rows, outputs))
    columns = {f"residual_{k + 1}": residual[:, k] for k in range(outputs)}
    return pa.table(columns | {f"velocity_{k + 1}": velocity[:, k] for k in range(outputs)})


def _peak():
    """The resident peak of this process in bytes."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def judged(path):
    """Time, memory and verdict of one file."""
    from whorl import measured

    before = _peak()
    start, busy = time.perf_counter(), time.process_time()
    finding = measured.judge(measured.read(path))
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    rise = _peak() - before
    return {
        "seconds": seconds,
        "cpu": busy,
        "memory": rise,
        "p": finding.p,
        "skewness": finding.leading.fit.skewness,
        "verdict": finding.verdict,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--outputs", type=int, default=30)
    given = timing.asked(parser, rows=2000, outputs=4)
    held = given.rows * given.outputs * 2 * 8
    print(f"{given.rows} rows, {given.outputs} outputs: {held / 1e6:.0f} MB of numbers")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in (0.0, 0.01):
            data = table(given.rows, given.outputs, turn)
            for kind, write in (
                ("csv", pyarrow.csv.write_csv),
                ("parquet", pyarrow.parquet.write_table),
            ):
                path = pathlib.Path(folder) / f"turn_{turn:g}.{kind}"
                write(data, path)
                done = subprocess.run(
                    [sys.executable, "-c", CHILD, path],
                    cwd=HERE,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                seen = json.loads(done.stdout)
                rows.append(
                    [
                        path.name,
                        f"{path.stat().st_size / 1e6:.0f}",
                        f"{seen['seconds']:.1f}",
                        f"{seen['cpu']:.1f}",
                        f"{seen['memory'] / 1e6:.0f}",
                        f"{seen['memory'] / held:.2f}",
                        f"{seen['p']:.2g}",
                        seen["verdict"],
                    ]
                )
                path.unlink()
    head = ["file", "MB", "seconds", "cpu s", "memory, MB", "of the data", "p", "verdict"]
    print(timing.table(head, rows))


if __name__ == "__main__":
    main()
