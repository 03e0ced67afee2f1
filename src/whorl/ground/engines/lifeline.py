"""Children end with their parent, whatever ends it.

They watch a pipe whose other end the parent alone holds.

The pipe closes when the parent lets go of it or dies, even by SIGKILL. On Linux the kernel is asked
to see to it as well, for a child that is too busy to look; it does so when the thread ends that
started the child, and is therefore asked for the main thread only.

A child runs this file by its path, and before anything else: importing the library takes seconds,
in which a parent can die too.
"""

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

PR_SET_PDEATHSIG = 1
HELD = "__held__"  # the name under which a child runs this file


def terms(line: Any) -> tuple[str, dict[str, Any], str]:
    """What `runpy.run_path` has to be given in a child that holds this end of a line."""
    main = threading.current_thread() is threading.main_thread()
    return __file__, {"LINE": line, "MAIN": main}, HELD


def hold(line: Any, main: bool) -> None:
    """End this process when the other end of the line is closed."""
    if main and sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    mine = Connection(line, writable=False) if isinstance(line, int) else line
    threading.Thread(target=_watch, args=(mine,), daemon=True).start()


def _watch(line: Any) -> None:
    with contextlib.suppress(OSError, EOFError):
        line.recv_bytes()  # nobody ever sends anything
    os._exit(1)


@contextlib.contextmanager
def deaf() -> Iterator[None]:
    """Children that are started meanwhile do not hear Ctrl-C, which a terminal sends to all.

    Their parent ends them.

    For this thread the signal waits until afterwards.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


if __name__ == HELD:
    hold(globals()["LINE"], globals()["MAIN"])
