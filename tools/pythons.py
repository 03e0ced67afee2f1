"""Run the README's two commands with every supported Python on this machine.

The lock file installs other versions of NumPy and JAX for newer interpreters, so a change can pass
with one Python and fail with another. Each interpreter gets an environment and a log of its own.

    python tools/pythons.py            every supported Python found on the path or in pyenv
    python tools/pythons.py 3.12 3.13  these only
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
ROOT = Path(__file__).parents[1]
LOGS = ROOT / "runs" / "pythons"
COMMANDS = ("test", "reproduce")  # the README's two commands


def version(program: str) -> str:
    """The version that an interpreter reports; empty where it does not start."""
    asked = [program, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else ""


def found(wanted: tuple[str, ...]) -> dict[str, str]:
    """An interpreter for each wanted version, where the machine has one.

    The path comes first. A shim of pyenv on the path may not start; then its folder is searched.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    programs: dict[str, str] = {}
    for short in wanted:
        on_path = shutil.which(f"python{short}")
        installed = sorted(pyenv.glob(f"{short}.*/bin/python"), reverse=True)
        for program in [*([on_path] if on_path else []), *map(str, installed)]:
            if version(program).startswith(f"{short}."):
                programs[short] = program
                break
    return programs


def outcome(short: str, program: str) -> tuple[bool, str]:
    """Whether both commands succeed with this interpreter, and a line that says so."""
    began, results = time.monotonic(), []
    for command in COMMANDS:
        log, run = LOGS / f"{short}-{command}.log", LOGS / short
        shutil.rmtree(run, ignore_errors=True)  # a run that is there would only be read again
        line = ["make", command, f"PYTHON={program}", f"VENV=.venv-{short}", f"RUN={run}"]
        print(f"Python {short}: make {command}, into {log.relative_to(ROOT)}", flush=True)
        with log.open("w") as written:
            ended = subprocess.run(line, cwd=ROOT, stdout=written, stderr=written, check=False)
        results.append((command, ended.returncode == 0))
    minutes = (time.monotonic() - began) / 60
    words = ", ".join(f"make {name} {'passes' if good else 'FAILS'}" for name, good in results)
    return all(good for _, good in results), f"{version(program):<8} {words} ({minutes:.0f} min)"


def main() -> int:
    """Try every interpreter, then print one line for each."""
    wanted = tuple(sys.argv[1:]) or SUPPORTED
    programs = found(wanted)
    LOGS.mkdir(parents=True, exist_ok=True)
    results = [outcome(short, program) for short, program in programs.items()]
    print(*(line for _, line in results), sep="\n")
    missing = [short for short in wanted if short not in programs]
    if missing:
        print(f"not on this machine: Python {', '.join(missing)}")
    return 0 if results and all(good for good, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
