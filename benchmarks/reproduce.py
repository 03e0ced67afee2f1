"""How long the commands take: whole processes, from a cold start, on a quiet machine.

python benchmarks/reproduce.py
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import timing

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}


def seconds(*command):
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", *command], check=True, capture_output=True, env=ENVIRONMENT
    )
    return time.perf_counter() - begun


def main():
    smoke = timing.asked(argparse.ArgumentParser(description=__doc__)).smoke
    with tempfile.TemporaryDirectory() as folder:
        # Nothing is compiled before the first command, and each begins without results.
        ENVIRONMENT["WHORL_CACHE"] = str(Path(folder) / "programs")
        quick, full = Path(folder) / "quick", Path(folder) / "full"
        small = ["--quick"] * smoke
        whole = ("whorl_cli", "reproduce", *small, "--out")
        rows = {
            "whorl --help": seconds("whorl_cli", "--help"),
            "whorl reproduce --quick": seconds(
                "whorl_cli", "reproduce", "--quick", "--out", str(quick)
            ),
            "whorl reproduce": seconds(*whole, str(full)),
            "whorl reproduce, again": seconds(*whole, f"{full}-again"),
            "whorl reproduce --no-cache": seconds(*whole, f"{full}-anew", "--no-cache"),
            "whorl verify": seconds("whorl_cli", "verify", str(full)),
        }
        size = sum(path.stat().st_size for path in full.rglob("*") if path.is_file())
    print(
        timing.table(["command", "seconds"], [[name, f"{one:.1f}"] for name, one in rows.items()])
    )
    print(f"the run folder has {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
