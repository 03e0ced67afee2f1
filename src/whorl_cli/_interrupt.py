"""Ctrl-C: one sentence at once, a moment to put things away, and the end, whatever runs.

Python hands a signal to its main thread between two steps of its own, and a compiler takes no such
step for seconds. The signal therefore also wakes a thread, which ends the process when the moment
is over. It ends without Python's usual farewell, in which a thread that is still inside a compiler
would abort the process.
"""

import contextlib
import itertools
import os
import select
import signal
import sys
import threading
import time
from types import FrameType

CODE = 130  # what a shell answers for a command that Ctrl-C ended
GRACE = 0.3  # seconds to put things away
KEEPING = ("reproduce", "run", "replicate", "sweep")  # commands that go on where they stopped
_heard = threading.Event()
_speaking = threading.Lock()
_times = itertools.count()  # that the main thread was told, or had begun to end
_words: list[str] = []  # what was said


def sentence(command: str | None = None, how: str = "interrupted") -> str:
    """What is said to whoever ends a command."""
    kept = "; what was finished is kept, and the same command goes on from there"
    return how + (kept if command is None or command in KEEPING else "")


def arm() -> None:
    """Answer Ctrl-C so from now on.

    A process that was told to ignore it, such as one in the background, goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    threading.Thread(target=_wait, args=(woken,), name="whorl-interrupt", daemon=True).start()
    signal.signal(signal.SIGINT, _asked)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)


def disarm() -> None:
    """The command is done: Ctrl-C no longer changes how it ended."""
    if signal.getsignal(signal.SIGINT) is _asked:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave() -> None:
    """End now, if it was asked for by Ctrl-C."""
    if _heard.is_set():
        _end()


def _asked(_: int, frame: FrameType | None) -> None:
    """In the main thread: the first time as Python would, so that files are closed.

    More than once is the other thread's matter.
    """
    if next(_times):
        return
    _heard.set()
    _say()
    if _importing(frame):
        _end()
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being loaded.

    One of C++ that is stopped half-way may crash, and nothing is open yet.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _wait(woken: int) -> None:
    """In a thread of its own: end when the moment is over, or when Ctrl-C is pressed again."""
    pressed = bytes([signal.SIGINT])
    while os.read(woken, 1) != pressed:
        pass
    _heard.set()
    _say()
    until = time.monotonic() + GRACE
    while (
        select.select([woken], [], [], max(0.0, until - time.monotonic()))[0]
        and os.read(woken, 1) != pressed
    ):
        pass
    _end()


def _say() -> None:
    """Say the sentence, once, and nothing after it, whatever breaks meanwhile.

    Come back when it is said.
    """
    with _speaking:
        if _words:
            return
        _words.append(
            sentence(next((word for word in sys.argv[1:] if not word.startswith("-")), ""))
        )
        text = f'{{"error": "{_words[0]}"}}' if "--json" in sys.argv else f"whorl: {_words[0]}"
        with contextlib.suppress(OSError):
            cleared = (
                "\r\x1b[2K\x1b[?25h" if os.isatty(2) else ""
            )  # of a progress bar, which had also hidden the cursor
            os.write(2, f"{cleared}{text}\n".encode())
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _end() -> None:
    """No farewell, and nobody left behind."""
    next(_times)
    _say()
    end(CODE)


def end(code: int) -> None:
    """End at once, as threads inside a compiler allow; children of this session end too."""
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir("/proc/self/task"):  # noqa: PTH208 # pathlib may be half loaded
            with open(f"/proc/self/task/{task}/children") as children:  # noqa: PTH123
                for child in map(int, children.read().split()):
                    if os.getsid(child) == os.getsid(0):
                        os.kill(child, signal.SIGTERM)
    os._exit(code)
