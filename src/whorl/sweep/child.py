"""Run compiled calls in a child process that can be killed.

Python cannot interrupt a running XLA program. Where a sweep has a time limit, every worker
therefore hands its calls to a child over a pipe and kills it when the time is up. The first call of
a shape is made on a harmless problem, so that compilation does not count.
"""

import atexit
import contextlib
import os
import pickle  # nosec B403 # between a process and its own child, never from a file or a network
import selectors
import subprocess  # nosec B404 # starts this interpreter only
import sys
import threading
from multiprocessing import Pipe
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from whorl._child import python_command
from whorl.ground.engines import lifeline
from whorl.sweep.compute import Rows

if TYPE_CHECKING:
    from whorl.sweep.work import Work

GRACE = 600.0  # seconds that a program may take to compile
_CHILDREN = threading.local()


class Child:
    """A process that answers calls."""

    def __init__(self) -> None:
        line, self.line = Pipe(
            duplex=False
        )  # our end closes when this process ends, and the child with it
        terms = lifeline.terms(line.fileno())
        script = (
            f"import runpy; runpy.run_path(*{terms!r}); from whorl.sweep.child import main; main()"
        )
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)
        }
        with lifeline.deaf():
            # nosec B603 # this interpreter and nothing from outside
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                python_command("-c", script),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                pass_fds=(line.fileno(),),
            )
        line.close()
        self.warm: set[Any] = set()
        atexit.register(self.end)

    def ask(self, question: Any, seconds: float) -> Any:
        """The answer to a question, or a `TimeoutError` and the end of this child."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            _send(self.process.stdin, question)
            with selectors.DefaultSelector() as ready:
                ready.register(self.process.stdout, selectors.EVENT_READ)
                if not ready.select(seconds):
                    raise TimeoutError(f"no result after {seconds:g} s")
            kind, answer = pickle.load(self.process.stdout)  # nosec B301 # from our own child
        except (OSError, EOFError) as wrong:
            self.end()
            if isinstance(wrong, TimeoutError):
                raise
            raise MemoryError(
                f"the process of the call ended with {self.process.returncode}"
            ) from wrong  # most likely for want of memory
        if kind == "raised":
            raise answer
        return answer

    def end(self) -> None:
        """Kill the process."""
        atexit.unregister(self.end)
        self.process.kill()
        self.process.wait()
        for pipe in (self.line, self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def rows(work: "Work", number: int, places: np.ndarray, chunk: int) -> Rows:
    """The rows of some cases of a shard, computed in the child of this worker within the limit for
    each chunk.
    """
    assert work.limit is not None
    child = getattr(_CHILDREN, "one", None)
    if child is None or child.process.poll() is not None:
        child = _CHILDREN.one = Child()
    shape = (work.text, _shape(work, number), chunk)
    if shape not in child.warm:
        child.ask(("warm", work, number, chunk), GRACE + work.limit)
        child.warm.add(shape)
    return child.ask(("rows", work, number, places, chunk), work.limit * -(-len(places) // chunk))


def _shape(work: "Work", number: int) -> Any:
    from whorl.sweep.work import planned

    return tuple(planned(work.text).shard(number).shape.values())


def _answer(kind: str, work: "Work", number: int, *more: Any) -> Any:
    from dataclasses import replace

    from whorl.sweep import compute
    from whorl.sweep.work import TRAIN, function, planned

    plan = planned(work.text)
    cases = plan.of(plan.shard(number))
    train, chunk = (work.train, more[1]) if kind == "rows" else (TRAIN, more[0])
    if kind == "rows":
        return compute.rows(plan.design.seed, cases.rows(more[0]), chunk, function(train))
    harmless = cases.rows(np.zeros(1, dtype=int))
    usual = dict(harmless.free) | {
        "imbalance": np.zeros(1),
        "floor": np.ones(1),
        "scale": np.full(1, 0.1),
    }
    return compute.rows(plan.design.seed, replace(harmless, free=usual), chunk, function(train))


def _send(pipe: IO[bytes], message: Any) -> None:
    pickle.dump(message, pipe)
    pipe.flush()


def main() -> None:
    """Answer requests until the connection closes."""
    import jax

    jax.config.update("jax_enable_x64", True)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not disturb the answers
    while True:
        try:
            question = pickle.load(sys.stdin.buffer)  # nosec B301 # from our own parent
        except EOFError:
            return
        try:
            answer = ("answer", _answer(*question))
        except Exception as wrong:
            answer = (
                "raised",
                wrong
                if type(wrong).__module__ == "builtins"
                else RuntimeError(f"{type(wrong).__name__}: {wrong}"),
            )
        _send(answers, answer)
