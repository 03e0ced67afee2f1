"""Text, JSON, page and notebook say the same, and no interval denies the verdict beside it."""

import html
import json
from dataclasses import replace

import numpy as np
import pytest

from measured.loops import series
from measured.trials import STRAIGHT, TURNED, stationary
from whorl import measured
from whorl.measured import page, turning
from whorl.measured.bootstrap import Interval
from whorl.measured.words import ranged
from whorl.simplex import tangent_basis
from whorl.verdict import Verdict


def tables(numbers):
    """Random tables, with and without a turn or another metric, of 2 to 5 outputs."""
    for number in numbers:
        rng = np.random.default_rng([number, 33])
        outputs = int(rng.integers(2, 6))
        size, basis = outputs - 1, tangent_basis(outputs)
        loop = np.eye(size)
        if number % 4 == 1:
            loop = np.diag(1.0 + np.arange(size)) + 0.8 * np.triu(np.ones((size, size)), 1)
        if number % 4 >= 2:
            turn = rng.standard_normal((size, size))
            loop = loop + rng.uniform(0.05, 0.6) * (turn - (number % 4 == 2) * turn.T)
        applied, repeat = series(outputs, int(rng.integers(7, 13)))
        noise = rng.choice([0.0, 0.001, 0.01, 0.1]) * rng.standard_normal(applied.shape)
        yield applied, applied @ (basis @ loop @ basis.T).T + noise, repeat


def agrees(found):
    """Every phrase of the one source is in text, JSON, page and notebook; answers with the JSON."""
    said, text = found.said, str(found)
    told = json.loads(json.dumps(found.to_dict()))
    bare = replace(found)
    page_text, cell = html.unescape(page.render(bare)), html.unescape(bare._repr_html_())
    for phrase in (said.headline, said.reason, *(line for _, t in said.tables for _, line in t)):
        assert phrase in text
        assert phrase in page_text
        assert phrase in cell
    for note in said.notes:
        assert note in page_text
        assert note in cell
    assert (told["headline"], told["reason"]) == (said.headline, said.reason)
    assert told["notes"] == said.notes
    assert [[list(line) for line in t] for _, t in said.tables] == [
        one["lines"] for one in told["details"]
    ]
    return told


@pytest.mark.parametrize("part", range(6))
def test_text_json_page_and_notebook_agree_on_hundreds_of_tables(part, monkeypatch):
    monkeypatch.setattr(page, "_drawing", lambda *_: "")  # pictures have tests of their own
    seen = set()
    for applied, moved, repeat in tables(range(50 * part, 50 * part + 50)):
        found = measured.certify(applied, moved, repeat=repeat)
        told = agrees(found)
        seen.add(found.verdict)
        sure = found.p <= found.alpha
        for loop, numbers in zip(found.loops, told["loops"], strict=True):
            assert numbers["rank"] == loop.fit.rank
            assert (numbers["skewness"]["low"] > 0) == sure
            rates = [mode["rotation"]["low"] for mode in numbers["modes"]]
            if found.verdict == Verdict.TURNS:
                assert max(rates) > 0
            elif not loop.order.suspect:
                assert max(rates) == 0
            gradient = found.verdict == Verdict.GRADIENT
            assert gradient or numbers["metric"] is None
            assert not gradient or max(mode["rotation"]["high"] for mode in numbers["modes"]) == 0
    assert {Verdict.TURNS, Verdict.GRADIENT, Verdict.RECIPROCAL} <= seen


def test_test_and_interval_agree_for_weak_turns_at_any_level():
    edges = 0
    for number in range(60):
        rng = np.random.default_rng([number, 34])
        basis = tangent_basis(3)
        loop = basis @ np.array([[1.0, -0.05], [0.05, 1.0]]) @ basis.T
        applied = np.tile(np.eye(3) - 1 / 3, (8, 1))
        moved = applied @ loop.T + 0.12 * rng.standard_normal(applied.shape)
        alpha = float(rng.choice([0.01, 0.05, 0.1]))
        found = measured.certify(applied, moved, alpha=alpha)
        assert (found.leading.intervals.skewness.low > 0) == (found.p <= alpha)
        rate = found.leading.rotation
        if not found.leading.order.suspect:  # which the text says
            assert (rate is not None and rate.low > 0) == found.turns
        assert "(0.000 to" not in str(found) or not found.turns
        edges += found.turns and found.leading.turning.real > alpha / 2
    assert edges  # cases in which a two-sided interval would hold zero


def test_test_and_interval_agree_for_series():
    for number in range(12):
        rng = np.random.default_rng([number, 35])
        loop = np.array([[1.0, -0.25], [0.25, 1.3]])
        time, state, _ = stationary(loop, rng, steps=300)
        found = measured.follow(time, state)
        (phase,) = found.phases
        assert (phase.intervals.skewness.low > 0) == (phase.p <= 0.05)
        rate = phase.intervals.rotation
        assert found.turns <= (rate is not None and rate.low > 0)
        if phase.p > 0.05:
            assert rate is None or rate.low == 0


def test_the_interval_of_a_rotation_holds_the_truth():
    rng, held, rates = np.random.default_rng(36), 0, (0.1, 0.3, 0.8)
    for rate in rates:
        loop = np.array([[1.0, -rate], [rate, 1.0]])
        for _ in range(60):
            moved = 0.04 * rng.standard_normal((40, 2, 2)) / np.sqrt(40)
            noise = moved.sum(axis=0)
            seen = loop + noise
            spun = turning.turning(seen, moved, 39.0)
            if not spun.pairs:
                continue
            low, high = spun.rates(spun.pairs[0].value, 0.05)
            held += low <= rate <= high
    assert held / 180 > 0.91


def test_the_sum_over_samples_of_one_finding_does_not_deny_its_intervals():
    rng = np.random.default_rng(37)
    applied = np.tile(np.eye(3) - 1 / 3, (6 * 10, 1))
    sample = np.repeat(np.arange(10), 18)
    moved = applied + 0.3 * rng.standard_normal(applied.shape)
    found = measured.certify(applied, moved, sample=sample)
    assert found.p > 0.05
    assert all(loop.intervals.skewness.low == 0 for loop in found.loops)


def test_a_limit_above_zero_is_not_printed_as_zero():
    assert ranged(Interval(0.06, 0.0002, 0.098)) == "0.0600 (0.0002 to 0.0980)"


@pytest.mark.parametrize("loop", [STRAIGHT, TURNED], ids=["straight", "turned"])
def test_series_say_the_same_in_every_form(loop, monkeypatch):
    monkeypatch.setattr(page, "_drawing", lambda *_: "")
    time, state, _ = stationary(loop, np.random.default_rng(2), steps=300)
    agrees(measured.follow(time, state))
