"""A periodic signal that drives the states is reported, and no verdict is given."""

import json

import numpy as np
import pytest

from measured.trials import STRAIGHT, TURNED, relaxations, stationary
from whorl import measured
from whorl.measured import periodic
from whorl.measured.bootstrap import Interval
from whorl.measured.series import Arrow


def driven(rng, *, period=1.3, size=0.5, runs=8, steps=40):
    """Relaxations of a reciprocal learner that an unlabelled sine moves, by its differential equation."""
    fine, times = 0.01, 0.1 * np.arange(steps)
    states = []
    for _ in range(runs):
        state, phase, seen = 3 * rng.standard_normal(2), rng.uniform(0, 2 * np.pi), []
        for step in range(round(times[-1] / fine) + 1):
            if step % 10 == 0:
                seen.append(state)
            push = size * np.sin(2 * np.pi * step * fine / period + phase + np.array([0.0, 1.0]))
            state = state + fine * (push * 2 * np.pi / period - STRAIGHT @ state)
        states.append(seen)
    state = np.concatenate(states)
    state = state + 0.02 * rng.standard_normal(state.shape)
    return np.tile(times, runs), state, np.repeat(np.arange(runs), steps)


def test_a_periodic_drive_is_reported_and_gives_no_verdict():
    time, state, run = driven(np.random.default_rng(0))
    found = measured.follow(time, state, run=run, time_unit="s")
    assert found.verdict == "cannot tell"
    assert str(found).startswith("A periodic signal drives these states, so there is no verdict.")
    assert not found.turns
    drive = json.loads(json.dumps(found.to_dict()))["phases"][0]["drive"]
    assert drive["seen"]
    assert drive["period"] == pytest.approx(1.3, abs=0.15)


@pytest.mark.parametrize("loop", [STRAIGHT, TURNED], ids=["straight", "turned"])
def test_a_clean_series_keeps_its_verdict(loop):
    time, state, run = relaxations(loop, np.random.default_rng(0), runs=8, steps=40, noise=0.05)
    found = measured.follow(time, state, run=run)
    assert not found.phases[0].drive.seen
    assert found.verdict == ("turns" if loop is TURNED else "reciprocal")


def alarms(shape, *, many, uneven=False, tail=None, colour=0.0):
    """The share of white leftovers in which a line is seen at five times the level."""
    rng, hits = np.random.default_rng([len(shape), many]), 0
    for _ in range(many):
        left, times = [], []
        for steps in shape:
            noise = (
                rng.standard_normal((steps, 2))
                if tail is None
                else rng.standard_t(tail, (steps, 2))
            )
            for at in range(1, steps):
                noise[at] += colour * noise[at - 1]
            left.append(noise)
            gaps = rng.uniform(0.3, 1.7, steps) if uneven else np.ones(steps)
            times.append(np.cumsum(gaps))
        hits += periodic.line(left, times).p <= 5 * periodic.LEVEL
    return hits / many


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((24,) * 10, {}),
        ((60,) * 8, {}),
        ((400,), {}),
        ((400,), {"uneven": True}),
        ((100, 80, 60, 90), {}),
        ((24,) * 10, {"tail": 4}),
        ((400,), {"colour": 0.5}),
    ],
    ids=str,
)
def test_the_level_of_the_line_is_the_stated_one(shape, options):
    share = alarms(shape, many=200, **options)
    assert share <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_the_level_is_reached_for_even_white_noise():
    assert alarms((200,) * 4, many=300) >= 0.05 - 3 * np.sqrt(0.05 * 0.95 / 300)


def test_a_line_is_found_where_it_is_one():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(40):
        time = np.arange(200.0)
        noise = rng.standard_normal((200, 2))
        found.append(periodic.line([noise + np.sin(2 * np.pi * time[:, None] / 7.3)], [time]))
    assert sum(one.seen for one in found) >= 36
    assert np.median([one.period for one in found]) == pytest.approx(7.3, abs=0.2)


def test_too_few_samples_have_no_line():
    assert periodic.line([np.ones((4, 2))], [np.arange(4.0)]).p == 1.0


@pytest.mark.slow
def test_power_and_false_alarms_on_whole_series():
    seen = clean = 0
    for seed in range(20):
        time, state, run = driven(np.random.default_rng([seed, 1]))
        seen += measured.follow(time, state, run=run).verdict == "cannot tell"
        time, state, _ = stationary(STRAIGHT, np.random.default_rng([seed, 2]), steps=300)
        clean += measured.follow(time, state).phases[0].drive.seen
    assert seen >= 19
    assert clean <= 2


def test_an_entropy_that_spans_orders_of_magnitude_is_not_determined():
    def arrow(low, estimate, high):
        entropy = Interval(estimate, low, high)
        return Arrow(0.5, np.zeros(1), np.zeros(1), entropy, decay=1.0)

    assert not arrow(0.0, 777.671, 17533.913).determined
    assert not arrow(0.2, 5.0, 60.0).determined
    assert arrow(0.0, 0.01, 0.05).determined
    assert arrow(0.8, 1.2, 1.9).determined
