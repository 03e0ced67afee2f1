"""Published circuits, rebuilt from their equations and measured like devices."""

import numpy as np
import pytest

from measured.circuits import circuit, star
from whorl import measured


def bench(device, *, clamp, repeats=14, level=0.02, seed=0):
    """A series of measurements with noise.

    Residuals, currents at the outputs, velocities, and the repeat.
    """
    applied, runs = measured.balanced(device.outputs, repeats=repeats)
    applied = 10 * applied
    seen, currents = device.measured(applied, clamp=clamp)
    noise = np.random.default_rng(seed).standard_normal(seen.shape)
    return applied, currents, seen + level * np.abs(seen).max() * noise, runs


@pytest.mark.parametrize("seed", range(3))
def test_resistors_nudged_by_currents_follow_a_gradient(seed):
    applied, _, seen, runs = bench(circuit(seed=seed), clamp=False, seed=seed + 20)
    finding = measured.certify(applied, seen, repeat=runs)
    assert not finding.turns
    assert finding.leading.power.visible < 0.2  # and a turn would have been seen


@pytest.mark.parametrize("seed", range(3))
def test_the_response_of_resistors_under_coupled_learning_is_reciprocal(seed):
    _, currents, seen, runs = bench(circuit(seed=seed), clamp=True, seed=seed + 10)
    finding = measured.certify(None, seen, potentials=currents, repeat=runs, alpha=0.01)
    assert not finding.turns
    assert "This physical response shows no sign of turning." in str(finding)


def test_coupled_learning_is_reciprocal_where_all_outputs_draw_alike():
    applied, _, seen, runs = bench(star(), clamp=True, seed=4)
    assert not measured.certify(applied, seen, repeat=runs).turns


def test_coupled_learning_is_a_gradient_in_another_metric():
    # Clamping voltages applies the currents S e. K is symmetric and so is S, but K S is not unless
    # they commute: its eigenvalues are real.
    applied, currents, seen, runs = bench(circuit(seed=1, outputs=4), clamp=True, level=1e-4)
    finding = measured.certify(applied, seen, potentials=currents, repeat=runs)
    assert finding.verdict == "gradient in another metric"
    assert finding.leading.rotation is None
    assert "no mode turns" in str(finding)
    metric = finding.leading.spectrum.metric
    turned = metric @ finding.leading.fit.loop
    assert abs(turned - turned.T).max() < 1e-9 * abs(turned).max()
    origin = finding.leading.diagnosis.response
    assert origin.p > 0.05
    assert abs(origin.adjoint.estimate) < 0.05


@pytest.mark.parametrize("clamp", [True, False])
def test_a_gyrator_is_found_in_the_response(clamp):
    applied, currents, seen, runs = bench(circuit(seed=2, gyration=6.0), clamp=clamp, level=0.005)
    finding = measured.certify(
        applied, seen, potentials=currents if clamp else applied, repeat=runs
    )
    assert finding.verdict != "reciprocal"
    assert finding.leading.diagnosis.response.p <= 0.05
    without = measured.certify(
        *(bench(circuit(seed=2), clamp=False, level=0.005)[at] for at in (0, 2)), repeat=runs
    )
    assert not without.turns
