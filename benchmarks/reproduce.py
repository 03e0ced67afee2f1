"""How long the commands take: whole processes, from a cold start, on a quiet machine.

python benchmarks/reproduce.py
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import timing


def seconds(*command):
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", *command], check=True, capture_output=True)
    return time.perf_counter() - begun


def main():
    smoke = timing.asked(argparse.ArgumentParser(description=__doc__)).smoke
    with tempfile.TemporaryDirectory() as folder:
        quick = Path(folder) / "quick"
        full = quick if smoke else Path(folder) / "full"
        whole = ("whorl_cli", "reproduce", *["--quick"] * smoke, "--out", str(full))
        rows = {
            "whorl --help": seconds("whorl_cli", "--help"),
            "whorl reproduce --quick": seconds(
                "whorl_cli", "reproduce", "--quick", "--out", str(quick)
            ),
            "whorl reproduce": seconds(*whole),
            "whorl reproduce, again": seconds(*whole),
            "whorl verify": seconds("whorl_cli", "verify", str(full)),
        }
        size = sum(path.stat().st_size for path in full.rglob("*") if path.is_file())
    for name, taken in rows.items():
        print(f"{name:<28}{taken:>8.1f} s")
    print(f"{'size of the run folder':<28}{size / 1e6:>8.1f} MB")


if __name__ == "__main__":
    main()
