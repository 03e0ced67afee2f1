"""The circuit of the explorer: its claims, computed from what is plotted."""

import numpy as np
import pytest

from whorl.explorer import gallery, recipe, wires
from whorl.explorer.presets import BY_NAME


def drawn(name):
    return gallery.paths(BY_NAME[name].state)["figures"]["spiral"].data


def lines(traces):
    """The directions of the straight lines that are drawn."""
    found = [
        np.array([one.x[1] - one.x[0], one.y[1] - one.y[0]])
        for one in traces
        if one.name == "straight"
    ]
    return [line / np.linalg.norm(line) for line in found]


def rays(traces):
    """Whole paths of residuals, each (moments, 2)."""
    return [np.stack([one.x, one.y], axis=1) for one in traces if one.opacity == 0.35]


@pytest.mark.slow
def test_equilibrium_propagation_goes_straight_along_lines_at_right_angles():
    one, other = lines(drawn("propagation"))
    assert abs(one @ other) < 1e-9


@pytest.mark.slow
def test_coupled_learning_has_straight_lines_that_are_not_at_right_angles():
    traces = drawn("coupled")
    one, other = lines(traces)
    assert 0.1 < abs(one @ other) < 0.99
    # No residual goes around: between two straight lines it stays between them.
    for path in rays(traces):
        assert np.ptp(np.unwrap(np.arctan2(path[:, 1], path[:, 0]))) < np.pi


@pytest.mark.slow
def test_feedback_alignment_leaves_no_straight_line_and_turns_every_residual_the_same_way():
    traces = drawn("alignment")
    assert lines(traces) == []
    turned = [np.unwrap(np.arctan2(path[:, 1], path[:, 0])) for path in rays(traces)]
    assert len(turned) == wires.RAYS
    ways = {float(np.sign(angle[-1] - angle[0])) for angle in turned}
    assert len(ways) == 1
    assert all((np.diff(angle) * next(iter(ways)) > 0).all() for angle in turned)


@pytest.mark.slow
def test_currents_are_drawn_as_wide_as_they_are_and_conserved():
    state = BY_NAME["coupled"].state
    figure = gallery.picture(state)["figures"]["network"].to_dict()
    edges = [one for one in figure["data"] if one["mode"] == "lines"]
    seen = wires.wires(state)
    widths = [one["line"]["width"] for one in edges]
    np.testing.assert_allclose(widths, 0.8 + 14 * np.abs(seen.currents))
    ends = np.asarray(seen.circuit.edges)
    into = [
        sum(seen.currents[ends[:, 1] == node]) - sum(seen.currents[ends[:, 0] == node])
        for node in seen.circuit.sinks
    ]
    assert sum(into) == pytest.approx(1.0, rel=1e-12)


def test_the_recipe_of_a_circuit_certifies_the_same_loop(capsys):
    state = BY_NAME["alignment"].state
    exec(recipe.python(state), {})
    assert capsys.readouterr().out.strip() == wires.wires(state).verdict.strip()
    assert "turns" in wires.wires(state).verdict
    assert gallery.instant(state)["verdicts"][0] == wires.wires(state).verdict
