"""A bar says how far a run is, and changes nothing else."""

import jax
import numpy as np
import pytest

import whorl as wh
from whorl import _progress

net = wh.Network.random((3, 3, 3), floor=0.1, seed=3)
task = wh.Task.random(3, 3, seed=103)
x, y = task.inputs, task.targets


def many(progress):
    data = [np.stack([rows] * 130) for rows in (x, y)]
    order = {"schedule": np.zeros((130, 2), int), "turns": np.ones((130, 2), int)}
    policy = wh.adaptive(0.1)
    nets = wh.stack([net] * 130)
    return wh.train_many(nets, *data, policy=policy, **order, chunk=64, progress=progress)


CALLS = {
    "train": lambda progress: wh.train(
        net, x, y, policy=wh.adaptive(0.1), epochs=40, seed=0, progress=progress
    ),
    "train_many": many,
    "flow": lambda progress: wh.flow(
        net, x, y, wh.direct(), [0.0, 1.0, 3.0], selected=0, progress=progress
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_a_bar_grows_to_its_end_and_the_result_is_the_same_to_the_bit(name, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "EVERY", -1.0)
    quiet = CALLS[name](False)
    assert capsys.readouterr().err == ""
    told = CALLS[name](True)
    said = capsys.readouterr()
    shares = [int(part.split("]")[1].split("%")[0]) for part in said.err.split("\r")[1:]]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 100)
    assert len(set(shares)) > 2
    assert said.err.endswith("\n")
    assert said.out == ""
    for one, other in zip(jax.tree.leaves(quiet), jax.tree.leaves(told), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_a_run_that_fails_closes_its_bar(capsys):
    with pytest.raises(ValueError, match="max_steps must be enough"):
        wh.flow(net, x, y, wh.direct(), [0.0, 9.0], selected=0, max_steps=2, progress=True)
    assert capsys.readouterr().err.endswith("\n")
    assert _progress._open == []


def test_a_bar_draws_rarely_where_every_frame_is_kept(capsys):
    with _progress.bar("train", shown=True) as here:
        for number in range(1000):
            here.to(number / 1000)
    assert capsys.readouterr().err.count("\r") < 10
