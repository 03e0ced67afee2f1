"""The command as two processes: this one answers signals, and its child does the work.

A compiler keeps Python from handling a signal for seconds, and an exception that a signal raises
inside a callback of a library is lost. This process imports nothing heavy and does nothing but
wait, so it hears every signal. It asks the worker to end, gives it a moment to put files away, and
then kills it with everything that it started. The worker is a fork, made before there is any
thread, so it starts within milliseconds and shares the terminal and its process group.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from whorl_cli import FAULT
from whorl_cli._child import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

GRACE = {"SIGINT": 0.3}  # seconds to put things away: somebody waits at the keyboard
LONGER = 2.0  # for other signals, which come from programs
ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
KEEPING = ("reproduce", "run", "replicate", "sweep")  # commands that go on where they stopped
_heard: set[int] = set()  # signals that wait for this process; those that it ignores are not here


def listen() -> bool:
    """Hold all signals back until `supervise` asks for them; False where that is not possible."""
    if not hasattr(os, "fork"):
        return False
    numbers = [getattr(signal, name) for name in ENDING]
    _heard.update(one for one in numbers if signal.getsignal(one) is not signal.SIG_IGN)
    _heard.update((signal.SIGCHLD, signal.SIGALRM))
    # A child cannot be waited for where this signal was ignored when the command started.
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _heard)
    return True


def supervise(given: "argparse.Namespace") -> int | None:
    """Divide into two: None in the worker, and in this process the exit code of the command."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # a closed one is None
        stream.flush()  # what both processes hold would be written twice
    folder = ""
    with contextlib.suppress(OSError):  # most commands need no temporary files
        folder = tempfile.mkdtemp(prefix="whorl-")
    alive, life = os.pipe()
    worker = os.fork()
    if worker == 0:
        os.close(life)
        os.environ.update(environment())  # also for what packages of others start
        # A browser that `explore` opens may outlive the command, and keeps the user's folder.
        if folder and given.command != "explore":
            os.environ["TMPDIR"] = tempfile.tempdir = folder
        _work(alive, folder)
        return None
    os.close(alive)
    status, asked = _wait(worker)
    shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    number = asked or -min(code, 0) or max(code - 128, 0)
    if number == 0:
        return code
    name = signal.Signals(number).name
    if name in CRASHES:
        words = f"a fault of whorl itself, please report it ({name} in a library)"
        return _say(words, given, FAULT)
    return _say(sentence(given.command, number), given, 128 + number)


def sentence(command: str, number: int = signal.SIGINT) -> str:
    """What a user reads when a signal ended a command."""
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    how += ", as a system does when memory runs out" if number == signal.SIGKILL else ""
    more = "; what was finished is kept, and the same command goes on from there"
    return how + (more if command in KEEPING else "")


def _wait(worker: int) -> tuple[int, int]:
    """The status with which the worker ends, and the signal that asked for it, or 0.

    Signals are taken one by one instead of interrupting something, so that none is lost.
    """
    asked, until, below = 0, float("inf"), set[int]()
    while True:
        number = signal.sigwait(_heard)
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            break
        if number == signal.SIGALRM:
            os.kill(worker, signal.SIGSTOP)  # it starts nothing more while its processes are listed
            below.update(_below(worker))
            os.kill(worker, signal.SIGKILL)
        elif number != signal.SIGCHLD:
            below.update(_below(worker))
            if not asked:
                asked = number
                os.kill(worker, signal.SIGTERM)
            grace = GRACE.get(signal.Signals(number).name, LONGER)
            until = min(until, time.monotonic() + grace)
            signal.setitimer(signal.ITIMER_REAL, max(until - time.monotonic(), 1e-3))
    _kill(below)
    return status, asked


def _work(alive: int, folder: str) -> None:
    """Become the worker: end when asked by SIGTERM, or when the supervisor is gone.

    A terminal sends its signals to both processes. Only the supervisor answers them, also for
    what the worker starts: an ignored signal stays ignored in other programs.
    """
    for name in ENDING:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _asked)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _heard)
    threading.Thread(target=_watch, args=(alive, folder), daemon=True).start()


def _asked(number: int, _: object) -> None:
    """End as after Ctrl-C, without a word: the supervisor has the last one."""
    signal.signal(number, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    raise KeyboardInterrupt(number)


def _watch(alive: int, folder: str) -> None:
    """In a thread of the worker: the supervisor writes nothing, so an answer means its end."""
    os.read(alive, 1)
    _kill(_below(os.getpid()))
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _below(process: int) -> "Iterator[int]":
    """The processes of this session that a process started, and those that they started."""
    with contextlib.suppress(OSError):
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            for child in map(int, children.read_text().split()):
                if os.getsid(child) == os.getsid(0):
                    yield child
                    yield from _below(child)


def _kill(processes: "set[int] | Iterator[int]") -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            if os.getsid(process) == os.getsid(0):
                os.kill(process, signal.SIGKILL)


def _say(words: str, given: "argparse.Namespace", code: int) -> int:
    """The last sentence of a command, over a progress bar that had hidden the cursor."""
    text = json.dumps({"error": words}) if given.json else f"whorl: {words}"
    with contextlib.suppress(OSError):
        os.write(2, (("\r\x1b[2K\x1b[?25h" if os.isatty(2) else "") + f"{text}\n").encode())
    return code
