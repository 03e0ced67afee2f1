"""`train_many` with faults, for workers of any kind: what to do wrong is in the environment."""

import os
import time

import numpy as np

from whorl.ensemble import train_many


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
