"""Time series: relaxations, stationary runs, uneven samples, noise, phases and the arrow of time."""

import numpy as np
import pytest
from scipy import linalg

import session
from measured.trials import OTHER, STRAIGHT, relaxations, stationary
from whorl import measured
from whorl.measured import series

EXAMPLE = session.DOCS.parent / "examples/relaxations.csv"
TURNING = np.array([[1.0, -1.0], [1.0, 1.0]])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize(
    ("loop", "verdict"),
    [(STRAIGHT, "reciprocal"), (TURNING, "turns"), (OTHER, "gradient in another metric")],
)
def test_relaxations_are_told_apart(loop, verdict, uneven):
    rng = np.random.default_rng(0)
    time, state, run = relaxations(loop, rng, noise=0.01, uneven=uneven)
    found = measured.follow(time, state + np.array([2.0, -1.0]), run=run)
    assert found.verdict == verdict
    np.testing.assert_allclose(found.phases[0].course.loop, loop, atol=0.1)
    np.testing.assert_allclose(found.phases[0].course.rest, [2.0, -1.0], atol=0.05)
    assert ("uneven" in str(found)) == uneven


def test_without_noise_the_loop_is_the_logarithm_of_the_propagator():
    time, state, run = relaxations(OTHER, np.random.default_rng(1), noise=0.0)
    course = series.follow(series.runs(time, state, run))
    np.testing.assert_allclose(course.loop, OTHER, atol=1e-7)
    before, after = (
        np.concatenate([state[run == k][a:b] for k in range(12)]) for a, b in ((0, -1), (1, None))
    )
    power = np.linalg.lstsq(before, after, rcond=None)[0].T
    np.testing.assert_allclose(course.loop, -np.real(linalg.logm(power)) / 0.2, atol=1e-6)
    # What all units together see of a step of the loop is the whole step.
    assert course.told(STRAIGHT / np.linalg.norm(STRAIGHT)).sum() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_a_regression_on_noisy_states_is_biased_and_this_one_is_not():
    rng = np.random.default_rng(2)
    time, state, _ = stationary(STRAIGHT, rng, steps=20_000, noise=0.3)
    course = series.follow(series.runs(time, state))
    np.testing.assert_allclose(course.loop, STRAIGHT, atol=0.25)
    assert np.all(np.abs(course.loop - STRAIGHT) < 4 * np.sqrt(np.sum(course.influence**2, axis=0)))
    naive = np.linalg.lstsq(state[:-1], state[1:], rcond=None)[0].T
    assert np.abs(-np.real(linalg.logm(naive)) / 0.2 - STRAIGHT).max() > 0.4


def test_the_arrow_of_time_of_a_turning_run_is_seen():
    rng = np.random.default_rng(3)
    time, state, cover = stationary(TURNING, rng, steps=1000)
    arrow = measured.follow(time, state).phases[0].arrow
    drift = TURNING @ cover
    odd, even = (drift - drift.T) / 2, (drift + drift.T) / 2
    truth = np.trace(np.linalg.solve(cover, odd.T) @ np.linalg.solve(even, odd))
    assert arrow.p < 0.01
    assert arrow.entropy.low < truth < arrow.entropy.high
    lagged = linalg.expm(-0.2 * TURNING) @ cover
    enclosed = (lagged - lagged.T)[1, 0] / 2 / 0.2
    assert abs(arrow.area[0] - enclosed) < 1.5 * arrow.spread[0]
    time, state, _ = stationary(STRAIGHT, rng, steps=1000)
    still = measured.follow(time, state).phases[0].arrow
    assert still.p > 0.01
    assert still.entropy.low == 0.0


def test_detailed_balance_is_not_reciprocity():
    # Drift times diffusion is symmetric for a gradient flow in another metric whose noise fits it.
    rng = np.random.default_rng(4)
    time, state, _ = stationary(OTHER, rng, steps=2500, noise=0.05)
    phase = measured.follow(time, state).phases[0]
    assert phase.verdict != "reciprocal"
    assert phase.arrow.p < 0.05  # white noise does not fit this one


def test_gaps_and_runs_end_a_stretch():
    time = np.array([0.0, 0.1, 0.2, 0.3, 2.0, 2.1, 2.2, 0.0, 0.1, 0.2])
    found = series.runs(time, np.zeros((10, 2)))
    assert [len(run.time) for run in found] == [4, 3, 3]
    labels = np.array(list("aaabbbbbbb"))
    assert [len(run.time) for run in series.runs(time, np.zeros((10, 2)), labels)] == [3, 1, 3, 3]


def test_samples_too_far_apart_are_warned_of():
    rng = np.random.default_rng(5)
    time, state, _ = stationary(np.array([[0.3, -13.0], [13.0, 0.3]]), rng, steps=400)
    found = measured.follow(time, state)
    assert found.phases[0].aliased
    assert "more than half a cycle between samples" in str(found)


def test_drift_and_saturation_are_named():
    rng = np.random.default_rng(6)
    time, state, _ = stationary(STRAIGHT, rng, steps=1500)
    drifting = state + np.outer(np.linspace(-3, 3, 1500), [1.0, 0.5])
    assert measured.follow(time, drifting).phases[0].effects["drift of the operating point"] < 0.05
    seen = []
    for _ in range(12):
        state = 2 * rng.standard_normal(2)
        for step in range(2000):
            if step % 100 == 0:
                seen.append(state + 0.005 * rng.standard_normal(2))
            state = state - 0.002 * (STRAIGHT @ state + 0.3 * state**3)
    times, runs = np.tile(0.2 * np.arange(20), 12), np.repeat(np.arange(12), 20)
    bent = measured.follow(times, np.array(seen), run=runs)
    assert bent.phases[0].effects["saturation"] < 0.05


def test_phases_have_loops_of_their_own_and_a_cycle_an_area():
    rng = np.random.default_rng(7)
    rests, state, seen, phase = (
        {"a": np.array([1.0, 0]), "b": np.array([0, 1.0])},
        np.zeros(2),
        [],
        [],
    )
    for _cycle in range(10):
        for name, loop in (("a", STRAIGHT), ("b", TURNING)):
            for _ in range(15):
                state = rests[name] + linalg.expm(-0.2 * loop) @ (state - rests[name])
                seen.append(state + 0.01 * rng.standard_normal(2))
                phase.append(name)
    found = measured.follow(0.2 * np.arange(300), np.array(seen), phase=np.array(phase))
    assert [one.verdict for one in found.phases] == ["reciprocal", "turns"]
    np.testing.assert_allclose(found.phases[1].course.rest, rests["b"], atol=0.05)
    assert len(found.areas) == 10
    assert "per cycle, over 10 cycles" in str(found)


def test_the_area_of_a_circle_is_that_of_a_circle():
    rng = np.random.default_rng(8)
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    held = []
    for _ in range(200):
        one = series.area(circle + 0.01 * rng.standard_normal(circle.shape))
        held.append(one.low < np.pi < one.high)
    assert 0.88 < np.mean(held) <= 1.0
    assert series.area(circle[::-1]).estimate == pytest.approx(-np.pi, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "time,state_1,state_2\n0,1,2\n1,x,2\n",
            "line 3, column state_1: every value must be a number, but it is 'x'",
        ),
        (
            "time,state_1,state_2\n0,1,2\n1,,2\n",
            "line 3, column state_1: every value must be a number, but it is missing",
        ),
        ("time,state_1,state_3\n0,1,2\n", "must have columns state_1, state_2 ... without gaps"),
        ("time,volts\n0,1\n", "must have columns state_1, state_2"),
        ("time,state_1,state_2\n", "must have samples, but it has none"),
        (
            "time,state_1,state_2\n0,1,2\n1,2,3\n",
            "a run must have at least 3 samples without a gap at increasing times",
        ),
        (
            "time,state_1,state_2\n" + "".join(f"{k},1,{k}\n" for k in range(40)),
            "state_1 must vary, but it is 1",
        ),
    ],
)
def test_a_bad_series_is_refused_in_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError) as refused:
        measured.read_series(path)
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_time_that_goes_back_is_refused_with_its_line(tmp_path):
    path = tmp_path / "back.csv"
    path.write_text("run,time,state_1,state_2\na,0,1,2\na,2,2,3\na,1,3,1\n")
    with pytest.raises(ValueError, match="line 4, column time: time must increase within a run"):
        measured.read_series(path)


def test_a_sample_with_an_empty_cell_is_left_out_and_counted_or_refused(tmp_path):
    lines = EXAMPLE.read_text().splitlines()
    full = measured.read_series(EXAMPLE).phases[0].course
    lines[9] = lines[9].rsplit(",", 1)[0] + ","
    (tmp_path / "gap.csv").write_text("\n".join(lines))
    found = measured.read_series(tmp_path / "gap.csv")
    assert "1 row with an empty cell left out; --strict refuses them" in str(found)
    assert found.to_dict()["dropped"] == 1
    np.testing.assert_allclose(found.phases[0].course.loop, full.loop, atol=0.05)
    with pytest.raises(ValueError, match=r"line 10, column state_2: .* but it is missing"):
        measured.read_series(tmp_path / "gap.csv", strict=True)


def test_samples_that_predict_nothing_of_the_next_are_refused():
    # Of white noise a fit makes loops of any kind: a third of them would not be called reciprocal.
    for seed in range(5):
        white = np.random.default_rng(seed).standard_normal((100, 2))
        with pytest.raises(ValueError, match="predict something of the next one"):
            measured.follow(0.1 * np.arange(100), white)


def test_a_single_wild_sample_is_named():
    time, state, run = relaxations(TURNING, np.random.default_rng(0), noise=0.01)
    assert "look at it" not in str(measured.follow(time, state, run=run))
    state[33, 0] += 100.0
    assert "lies" in str(wild := measured.follow(time, state, run=run))
    assert f"the sample at time {time[33]:g}" in str(wild)


def test_states_that_move_together_up_to_written_digits_are_named_and_leave_one_direction():
    time, state, run = relaxations(STRAIGHT, np.random.default_rng(0), noise=0.01)
    twins = np.stack([state[:, 0], np.array([float(f"{2 * one:.6g}") for one in state[:, 0]])], 1)
    found = measured.follow(time, twins, run=run)
    assert not found.can_turn
    assert "This learner cannot turn" in str(found)
    assert "state_2 = 2 state_1; certified in 1 remaining direction" in str(found)


def test_units_decimal_commas_and_a_byte_order_mark_are_read(tmp_path):
    time, state, run = relaxations(TURNING, np.random.default_rng(0), noise=0.01)
    lines = ["run;Time [s];state_1 (V);STATE_2 / V"]
    lines += [
        f"{r};{t:.6f};{x:.6f};{y:.6f}".replace(".", ",")
        for r, t, (x, y) in zip(run, time, state, strict=True)
    ]
    path = tmp_path / "excel.csv"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    found = measured.read_series(path)
    assert (found.verdict, found.time_unit) == ("turns", "s")
    direct = measured.follow(np.round(time, 6), np.round(state, 6), run=run)
    np.testing.assert_allclose(found.phases[0].course.loop, direct.phases[0].course.loop, rtol=1e-9)


@pytest.mark.slow
def test_a_finding_shows_itself_in_a_notebook():
    time, state, run = relaxations(TURNING, np.random.default_rng(0), noise=0.01)
    found = measured.follow(time, state, run=run)
    assert "<table>" in found._repr_html_()
    assert found.verdict.colour in found._repr_html_()
    assert found.to_dict()["phases"][0]["verdict"] == "turns"
