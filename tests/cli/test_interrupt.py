"""Signals, for real: one sentence and the right exit code at once, whatever the command is doing."""

import contextlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from study.small import text

KEPT = "interrupted; what was finished is kept, and the same command goes on from there"
START = """
import argparse, sys, whorl_cli
def call(given):
    print("begun", flush=True)
    {body}
    return 0
class Parser:
    def parse_args(self, _):
        return argparse.Namespace(call=call, json="--json" in sys.argv, command=sys.argv[1])
whorl_cli.parser = Parser
sys.exit(whorl_cli.main())
"""
# What a command may be doing: Python, C that takes no notice, code that takes every exception, a
# wait for threads in C.
BODIES = {
    "python": "while True: pass",
    "compiled": "import hashlib; hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
    "stubborn": """
    import time
    while True:
        try:
            time.sleep(9)
        except BaseException as wrong:
            print(type(wrong))
""",
    "threads": """
    import hashlib, threading
    for _ in range(3):
        threading.Thread(target=hashlib.pbkdf2_hmac, args=('sha256', b'', b'', 10**9)).start()
    raise SystemExit
""",
}


def interrupted(command, again=None, everyone=False):
    """Press Ctrl-C, once or twice, and say how it ended: seconds, exit code, words."""

    def send():
        os.killpg(command.pid, signal.SIGINT) if everyone else command.send_signal(signal.SIGINT)

    start = time.monotonic()
    send()
    if again is not None:
        time.sleep(again)
        with contextlib.suppress(ProcessLookupError):
            send()
    try:
        words = command.communicate(timeout=30)[1]
    finally:
        command.kill()
    return time.monotonic() - start, command.returncode, words


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("again", [None, 0.0, 0.1])
def test_ctrl_c_is_answered_whatever_runs(process, body, again):
    command = process("run", script=START.format(body=BODIES[body]))
    assert command.stdout.readline() == "begun\n"
    seconds, code, words = interrupted(command, again)
    assert (code, words) == (130, f"whorl: {KEPT}\n")
    assert seconds < 1.0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_another_signal_does_not_wait_for_threads_either(process, name):
    body = BODIES["threads"].replace(
        "raise SystemExit", "print('open', flush=True)\n    while True: pass"
    )
    command = process("run", script=START.format(body=body))
    command.stdout.readline()
    assert command.stdout.readline() == "open\n"
    command.send_signal(getattr(signal, name))
    try:
        words = command.communicate(timeout=20)[1]
    finally:
        command.kill()
    assert command.returncode == 128 + getattr(signal, name)
    assert words.startswith(f"whorl: ended by {name}")


def gone(process):
    """Whether a process ends within a second."""
    state = Path(f"/proc/{process}/stat")
    for _ in range(50):
        with contextlib.suppress(OSError):
            if state.read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.02)
                continue
        return True
    os.kill(process, signal.SIGKILL)
    return False


LOST = """
    import gc
    def callback(phase, info):  # an exception in here is printed and lost, as in XLA's callback
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            pass
    import time
    gc.callbacks.append(callback)
    while True:
        gc.collect()
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
def test_a_signal_that_arrives_inside_a_callback_is_not_lost(process, name):
    command = process("run", script=START.format(body=LOST))
    command.stdout.readline()
    command.send_signal(getattr(signal, name))
    words = command.communicate(timeout=20)[1]
    how = "interrupted" if name == "SIGINT" else f"ended by {name}"
    assert words == f"whorl: {how}{KEPT.removeprefix('interrupted')}\n"
    assert command.returncode == 128 + getattr(signal, name)


def test_nothing_lives_on_when_the_command_itself_is_killed(process, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    body = """
    import os, subprocess, tempfile
    tempfile.mkdtemp()
    print(os.getpid(), subprocess.Popen(["sleep", "60"]).pid, flush=True)
    while True: pass
"""
    command = process("run", script=START.format(body=body))
    command.stdout.readline()
    worker, child = map(int, command.stdout.readline().split())
    command.kill()
    assert (gone(worker), gone(child)) == (True, True)
    command.communicate()
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_of_a_worker_that_does_not_end_are_removed(process, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    body = "import tempfile; tempfile.mkdtemp(); print('made', flush=True)" + BODIES["stubborn"]
    command = process("certify", script=START.format(body=body))
    command.stdout.readline()
    command.stdout.readline()
    assert len(list(tmp_path.rglob("*"))) == 2
    assert interrupted(command)[1:] == (130, "whorl: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("SIGABRT", 70, "a fault of whorl itself, please report it (SIGABRT in a library)"),
        ("SIGKILL", 137, "ended by SIGKILL, as a system does when memory runs out"),
        ("SIGTERM", 143, "ended by SIGTERM"),
    ],
)
def test_a_worker_that_a_signal_ends_is_reported_in_one_sentence(process, name, code, words):
    body = f"import os, signal; os.kill(os.getpid(), signal.{name})"
    command = process("certify", "--json", script=START.format(body=body))
    assert json.loads(command.communicate(timeout=20)[1]) == {"error": words}
    assert command.returncode == code


# Makes the terminal of standard input the one that Ctrl-C is typed at.
TERMINAL = """import fcntl, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
"""


def test_the_worker_sees_the_terminal_and_a_ctrl_c_typed_there_ends_it():
    body = (
        "print(sys.stdin.isatty(), sys.stderr.isatty(), input(), flush=True)\n    while True: pass"
    )
    # Not pty.fork(): a process with JAX in it must not fork.
    terminal, inside = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-c", TERMINAL + START.format(body=body), "certify"],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    seen = b""
    for expected, typed in ((b"begun", b"hello\n"), (b"True True hello", b"\x03")):
        while expected not in seen:
            seen += os.read(terminal, 1000)
        os.write(terminal, typed)
    assert command.wait(timeout=60) == 130
    with contextlib.suppress(OSError):  # a terminal without a program is an error on Linux
        seen += os.read(terminal, 1000)
    assert seen.endswith(b"\x1b[?25hwhorl: interrupted\r\n")


def killed_at(process, delay, tmp_path):
    """What a real command says that gets SIGTERM after some seconds, and what it leaves."""
    command = process(*commands(tmp_path)["certify"])
    time.sleep(delay)
    command.send_signal(signal.SIGTERM)
    words = command.communicate(timeout=20)[1]
    return command.returncode, words


@pytest.mark.sampled(2)
@pytest.mark.parametrize("moment", range(30))
def test_sigterm_at_a_random_moment_ends_a_command_in_one_sentence(
    process, tmp_path, monkeypatch, moment
):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    delay = random.Random(moment).uniform(0.2, 4.0)
    answer = killed_at(process, delay, tmp_path)
    assert answer in ((143, "whorl: ended by SIGTERM\n"), (0, ""))
    assert list(place.iterdir()) == []


def test_a_machine_is_told_in_json(process):
    command = process("certify", "--json", script=START.format(body="while True: pass"))
    command.stdout.readline()
    _, code, words = interrupted(command)
    assert (code, json.loads(words)) == (130, {"error": "interrupted"})


def test_files_are_put_away_first(process, tmp_path):
    body = "import tempfile\n    with tempfile.TemporaryDirectory(dir='.'):\n        print('open', flush=True)\n        while True: pass"
    command = process("run", script=START.format(body=body))
    command.stdout.readline()
    assert command.stdout.readline() == "open\n"
    assert list(tmp_path.iterdir())
    interrupted(command)
    assert list(tmp_path.iterdir()) == []


def test_a_child_does_not_live_on(process):
    body = "import subprocess; child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True)\n    while True: pass"
    command = process("run", script=START.format(body=body))
    command.stdout.readline()
    child = int(command.stdout.readline())
    interrupted(command)
    assert gone(child)


def test_a_command_in_the_background_goes_on_ignoring_it(process):
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    command = process("run", script=ignore + START.format(body="import time; time.sleep(1)"))
    command.stdout.readline()
    assert interrupted(command)[1:] == (0, "")


@pytest.mark.parametrize("delay", [0.4, 0.8])
def test_ctrl_c_while_the_library_is_loaded(process, delay):
    command = process("explore", "--no-browser", "--port", "0")
    time.sleep(delay)
    seconds, code, words = interrupted(command)
    assert (code, words) == (130, "whorl: interrupted\n")
    assert seconds < 1.0


def commands(home):
    """Every command that takes a while, by name."""
    (home / "mine.toml").write_text(text())
    (home / "sweep.toml").write_text(
        (Path(__file__).parents[2] / "examples" / "sweep.toml").read_text()
    )
    measurements = Path(__file__).parents[2] / "examples" / "measurements.csv"
    return {
        "reproduce": ["reproduce", "--out", home / "paper"],
        "run": ["run", home / "mine.toml", "--out", home / "mine"],
        "replicate": [
            "replicate",
            "threshold",
            "--seeds",
            "9",
            "--workers",
            "2",
            "--out",
            home / "seeds.parquet",
        ],
        "sweep": ["sweep", home / "sweep.toml", "--out", home / "swept"],
        "processes": [
            "sweep",
            home / "sweep.toml",
            "--out",
            home / "spread",
            "--engine",
            "processes",
            "--workers",
            "2",
        ],
        "limit": ["sweep", home / "sweep.toml", "--out", home / "limited", "--limit", "60"],
        "certify": ["certify", measurements, "--page", home / "page.html"],
        "explore": ["explore", "--no-browser", "--port", "0"],
    }


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name", ["reproduce", "run", "replicate", "sweep", "processes", "limit", "certify", "explore"]
)
@pytest.mark.parametrize("again", [None, 0.05])
def test_every_command_ends_so_at_any_moment(process, complaints, tmp_path, name, again):
    """As a terminal does it: the signal reaches every process of the command."""
    for delay in (0.3, 1.0, 2.0, 4.0, 7.0, 12.0, 20.0):
        command = process(*commands(tmp_path)[name], start_new_session=True)
        time.sleep(delay)
        if command.poll() is not None:  # it was done before
            assert complaints(command.communicate()[1]) == ""
            break
        seconds, code, words = interrupted(command, again, everyone=True)
        words = complaints(words)
        if (code, words) == (0, ""):  # it was done just now, before it heard
            break
        kept = "" if name in ("certify", "explore") else KEPT.removeprefix("interrupted")
        assert (code, words) == (130, f"whorl: interrupted{kept}\n"), delay
        assert seconds < 1.0, delay
        left: list[Path] = []
        for _ in range(150):  # nobody is left of the session
            left = [path for path in Path("/proc").glob("[0-9]*/stat") if _of(path, command.pid)]
            if not left:
                break
            time.sleep(0.02)
        assert left == [], delay


def _of(path, session):
    with contextlib.suppress(OSError):
        state, _, _, belongs = path.read_text().rpartition(")")[2].split()[:4]
        return int(belongs) == session and state != "Z"
    return False
