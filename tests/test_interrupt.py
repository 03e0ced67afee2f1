"""An interrupt ends a run at once, also while compiled code is at work."""

import os
import signal
import subprocess
import sys
import time

import pytest

SETUP = """
import threading, time, os, signal, sys
import jax; jax.config.update("jax_enable_x64", True)
import numpy as np, whorl as wh
net = wh.Network.random((3, 3, 3), floor=0.1, seed=3)
task = wh.Task.random(3, 3, seed=103)
x, y = task.inputs, task.targets
long = np.zeros(10_000_000, dtype=np.int32)
alike = {"schedule": long, "record": False}
def interrupted():
    time.sleep(float(sys.argv[1]))
    print(time.time(), flush=True)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupted, daemon=True).start()
"""
RUNS = {
    "train": "wh.train(net, x, y, policy=wh.adaptive(0.1), turns=long + 1, **alike)",
    "train with a bar": (
        "wh.train(net, x, y, policy=wh.adaptive(0.1), turns=long + 1, progress=True, **alike)"
    ),
    "learn": "wh.learn(net, x, y, rule=wh.exponentiated_gradient(), scale=1e-9, **alike)",
    "train_many": (
        "wh.train_many(wh.stack([net] * 600), *(np.stack([a] * 600) for a in (x, y)),"
        "policy=wh.adaptive(0.1), schedule=np.zeros((600, 100_000), int),"
        "turns=np.ones((600, 100_000), int))"
    ),
    "flow": (
        "wh.flow(net, x, y, wh.direct(), np.linspace(0.0, 4e6, 100_000), max_steps=10**7,"
        "rtol=1e-13, atol=1e-14)"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_an_interrupt_ends_a_run_within_about_a_second(name):
    child = subprocess.Popen(
        [sys.executable, "-c", SETUP + RUNS[name] + "\nprint('ended')", "12"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    try:
        said, wrong = child.communicate(timeout=120)
    finally:
        child.kill()
    assert "KeyboardInterrupt" in wrong, wrong[-500:]
    assert "ended" not in said
    assert child.returncode in (-signal.SIGINT, 130, 1)
    assert time.time() - float(said.split()[0]) < 5
