"""`train_many` with faults, for workers of any kind, where what to do wrong is in the environment.

And jobs that do other things.
"""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whorl.learning.ensemble import train_many


def train(nets, inputs, targets, *, policy, **more):
    amounts = np.broadcast_to(np.asarray(policy.omega), len(inputs))
    if (bad := os.environ.get("WHORL_FAULT_RAISES")) and np.any(amounts == float(bad)):
        raise RuntimeError("this case cannot be")
    if (bad := os.environ.get("WHORL_FAULT_HANGS")) and np.any(amounts == float(bad)):
        time.sleep(3600)
    if (most := os.environ.get("WHORL_FAULT_MEMORY")) and len(inputs) > int(most):
        raise RuntimeError(f"RESOURCE_EXHAUSTED: Out of memory allocating {len(inputs)} pairs")
    time.sleep(float(os.environ.get("WHORL_FAULT_SLOW", "0")))
    return train_many(nets, inputs, targets, policy=policy, **more)


class Odd:
    """A job of which only the work matters."""

    def kept(self, left):
        return iter(())

    def give_up(self, number, reason):
        raise AssertionError(reason)


@dataclass(frozen=True)
class Asleep(Odd):
    """A job that never ends."""

    def __call__(self, number):
        time.sleep(3600)


@dataclass(frozen=True)
class Looked(Odd):
    """A job that says whether its process would import from the current folder."""

    def __call__(self, number):
        return "" in sys.path or str(Path.cwd()) in sys.path
