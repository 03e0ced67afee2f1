"""SIGTERM and SIGHUP end a command as Ctrl-C does.

Children first, then one sentence and the exit code that shells expect.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import NoReturn

NAMES = ("SIGTERM", "SIGHUP")


class Ended(KeyboardInterrupt):
    """A signal that asks a process to end; whoever keeps what is done after Ctrl-C keeps it now."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name: str = signal.Signals(number).name
        self.code: int = 128 + number


@contextlib.contextmanager
def orderly() -> Iterator[None]:
    """Meanwhile, these signals raise `Ended`, once: a second one ends the process at once.

    What is ignored stays so, as `nohup` asks for SIGHUP.
    """
    wanted = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        wanted = []
    taken = [number for number in wanted if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)
    raise Ended(number)
