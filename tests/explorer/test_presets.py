"""A claim is true of the data behind it, and so is the sentence that is found there."""

from dataclasses import replace

import numpy as np
import pytest

from whorl.explorer import findings, gallery, moment, page, presets, views
from whorl.explorer.presets import BY_NAME, PRESETS
from whorl.explorer.state import State


@pytest.fixture(params=PRESETS, ids=lambda preset: preset.name)
def preset(request):
    return request.param


def subject(preset):
    return gallery.SUBJECTS[views.subjects(preset.state.system)[0]](preset.state.still())


def losses(run):
    return [np.sum(run.residual(who) ** 2, axis=1) / 2 for who in ("native", "learner")]


def three_ports_turn(run):
    native, turning = losses(run)
    np.testing.assert_allclose(run.eigenvalues.real, 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(run.eigenvalues.imag), 3, atol=1e-9)
    return (np.diff(turning) < 0).all() and turning[-1] > native[-1]


def conservation_is_not_a_gradient(orbit):
    np.testing.assert_allclose(orbit.shares.sum(axis=1), 1, atol=1e-9)
    return abs(orbit.circulations["this field"]) > 0.1 and "not a gradient" in orbit.verdict


def spectral_feedback_cannot_turn(run):
    return not run.eigenvalues.imag.any() and (run.eigenvalues.real > 0).all()


def a_turn_helps(run):
    return run.entries[0, 0] < 0 and "lowers the mean loss" in moment.moment(run.state).curvature


def a_turn_hurts(run):
    return run.entries[0, 0] > 0 and "raises the mean loss" in moment.moment(run.state).curvature


def a_local_gain_is_lost_in_the_end(run):
    even, handed, step, drift = run.entries.sum(axis=0)
    gap = run.losses["adaptive"][-1] - run.losses["native"][-1]
    assert even + handed + step + drift == pytest.approx(gap, abs=1e-12)
    return even + handed < 0 < gap


def lines_at_right_angles(wires):
    one, other = wires.straight
    return abs(one @ other) < 1e-9


def lines_that_bend(wires):
    one, other = wires.straight
    return 0.1 < abs(one @ other) / np.linalg.norm(one) / np.linalg.norm(other) < 0.99


def no_line_is_left(wires):
    paths = wires.paths.transpose(1, 0, 2)
    angles = np.unwrap(np.arctan2(paths[:, :, 1], paths[:, :, 0]), axis=1)
    ways = np.sign(np.diff(angles, axis=1))
    return len(wires.straight) == 0 and len(np.unique(ways)) == 1


def eigenvalues_meet_where_the_rate_is_largest(held):
    best = held.angles[np.argmax(held.rates)]
    return abs(best - held.critical) <= held.angles[1] and held.rates[0] < held.rates.max() / 1.5


CLAIMS = {
    "turn": three_ports_turn,
    "cycle": conservation_is_not_a_gradient,
    "spectral": spectral_feedback_cannot_turn,
    "helps": a_turn_helps,
    "hurts": a_turn_hurts,
    "drift": a_local_gain_is_lost_in_the_end,
    "propagation": lines_at_right_angles,
    "coupled": lines_that_bend,
    "alignment": no_line_is_left,
    "critical": eigenvalues_meet_where_the_rate_is_largest,
}


@pytest.mark.timeout(600)
def test_the_claim_of_a_preset_is_true_of_its_data(preset):
    seen = subject(preset)
    assert CLAIMS[preset.name](seen)
    told = gallery.paths(preset.state)["finding"]
    assert told == preset.finding(seen)
    assert told.startswith("Here")


def test_the_words_about_the_ledger_follow_its_signs():
    run = subject(BY_NAME["drift"])
    names = ("turns by themselves", "than the native ones", "other states")
    even, handed, step, drift = run.entries.sum(axis=0)
    told = findings.account(run)
    for name, value in zip(names, (even + handed, step, drift), strict=True):
        assert f"{name} {'lower' if value < 0 else 'raise'} " in told
        assert f"{abs(value):.2g}" in told
    # The same account with every sign reversed.
    object.__setattr__(run, "entries", -run.entries)
    try:
        assert "turns by themselves raise" in findings.account(run)
        assert "other states raise" in findings.account(run)
    finally:
        object.__setattr__(run, "entries", -run.entries)


def test_where_settings_are_not_those_of_a_preset_nothing_is_claimed():
    assert presets.found(State(depth=2, epochs=2), None) == ""
    assert presets.found(replace(BY_NAME["drift"].state, seed=36), None) == ""


def test_a_preset_has_its_words_and_the_page_has_them(preset):
    assert preset.story.count(". ") + preset.story.count(": ") >= 1
    assert preset.equation.count("<var>") > 2
    assert f'data-preset="{preset.name}"' in page.html("")
