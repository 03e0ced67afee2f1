"""The critical turn: its claims, computed from what is plotted, and by the law of that name."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest

from whorl.budget import critical
from whorl.explorer import gallery, held, recipe, style
from whorl.explorer.presets import BY_NAME
from whorl.reciprocity import certify, closed_loop

STATE = BY_NAME["critical"].state


@pytest.fixture(scope="module")
def drawn():
    """The figures as the browser gets them, with every array as numbers."""
    sent = {}
    for portion in ("paths", "picture"):
        sent |= json.loads(gallery.encoded(portion, STATE, style.LIGHT))["figures"]
    return _unpacked(sent)


def _unpacked(value):
    if isinstance(value, dict) and "bdata" in value:
        flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=value["dtype"])
        shape = [int(part) for part in value.get("shape", "-1").split(",")]
        return flat.reshape(shape)
    if isinstance(value, dict):
        return {key: _unpacked(item) for key, item in value.items()}
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


def whole(figure, name):
    """The faint path of a name over all angles."""
    (trace,) = (one for one in figure["data"] if one.get("opacity") == 0.35 and one["name"] == name)
    return np.asarray(trace["x"]) + 1j * np.asarray(trace["y"])


def marked(figure, name):
    return [
        complex(one["x"][0], one["y"][0])
        for one in figure["data"]
        if one["name"] == name and one["mode"] == "markers"
    ]


def test_two_eigenvalues_keep_their_product_meet_once_and_part_as_a_pair(drawn):
    slow, fast = (whole(drawn["simplex"], name) for name in ("slower", "faster"))
    (weak, strong) = (value.real for value in marked(drawn["simplex"], "direct"))
    (meeting,) = marked(drawn["simplex"], "meeting")
    np.testing.assert_allclose([slow[0], fast[0]], [weak, strong], rtol=1e-12)
    np.testing.assert_allclose(slow * fast, weak * strong, rtol=1e-9)
    assert meeting == pytest.approx(np.sqrt(weak * strong), rel=1e-12)
    angle = np.degrees(np.arccos(2 * np.sqrt(weak * strong) / (weak + strong)))
    degrees = np.linspace(0, 90, len(slow))
    before, after = degrees < angle, degrees > angle
    assert not slow[before].imag.any()
    assert (np.diff(np.abs(fast - slow)[before]) < 0).all()
    np.testing.assert_allclose(slow[after], fast[after].conj(), rtol=1e-9)
    np.testing.assert_allclose(np.abs(slow[after]), meeting.real, rtol=1e-9)


def test_the_rate_is_largest_where_they_meet_and_direct_feedback_has_the_smaller_one(drawn):
    path = whole(drawn["spiral"], "rate")
    degrees, rates = path.real, path.imag
    levels = {one["name"]: one["y"][0] for one in drawn["spiral"]["data"] if one["mode"] == "lines"}
    (meeting,) = marked(drawn["spiral"], "meeting")
    assert rates[0] == pytest.approx(levels["direct"], rel=1e-12)
    assert (rates <= levels["geometric mean"] * (1 + 1e-12)).all()
    assert abs(degrees[np.argmax(rates)] - meeting.real) <= degrees[1]
    assert meeting.imag == pytest.approx(levels["geometric mean"], rel=1e-12)


def test_it_opens_at_the_angle_nearest_to_the_meeting():
    seen = held.held(STATE)
    assert STATE.frame == int(np.argmin(np.abs(seen.angles - seen.critical)))


def test_the_law_named_critical_reaches_the_rate_at_the_same_angle():
    seen = held.held(STATE)
    loop = certify(closed_loop(seen.response, critical()))
    best = np.asarray(loop.eigenvalues).real.min()
    assert best == pytest.approx(float(seen.bounds.turning), rel=1e-6)
    turned = np.asarray(critical().matrix(seen.response))
    assert turned[0, 0] == pytest.approx(np.cos(seen.critical), rel=1e-12)


def test_errors_decay_in_the_end_with_the_slope_of_the_rate(drawn):
    seen = held.held(STATE)
    direct, turned = (one for one in drawn["loss"]["data"])
    slope = np.diff(np.log(np.asarray(direct["y"]))) / np.diff(np.asarray(direct["x"]))
    np.testing.assert_allclose(slope, -seen.rates[0], rtol=1e-9)
    rows = np.asarray(turned["meta"]["as"]["y"])
    assert rows.shape == (STATE.updates + 1, held.MOMENTS)
    gentle = seen.made // 9  # far from the meeting one exponential is left in the end
    late = np.log(rows[gentle, -1] / rows[gentle, -30]) / (seen.times[-1] - seen.times[-30])
    assert late == pytest.approx(-seen.rates[gentle], rel=0.02)


@pytest.mark.parametrize(
    ("frame", "word"), [(0, "reciprocal"), (40, "gradient in another metric"), (120, "turns")]
)
def test_the_verdict_changes_where_the_eigenvalues_meet(frame, word):
    assert word in gallery.instant(replace(STATE, frame=frame))["verdicts"][0].splitlines()[0]


@pytest.mark.slow
def test_no_angle_beats_the_geometric_mean_in_any_network():
    for seed in range(3):
        seen = held.held(replace(STATE, imbalance=4.0, seed=seed))
        assert (seen.rates <= float(seen.bounds.turning) * (1 + 1e-9)).all()
        assert seen.rates[0] == pytest.approx(float(seen.bounds.reciprocal), rel=1e-9)


def test_the_recipe_prints_the_same_verdict(capsys):
    exec(recipe.python(STATE), {})
    verdict, bounds = held.held(STATE).said(STATE.frame)[0]
    assert capsys.readouterr().out.startswith(f"{verdict}\n{bounds}\n")
