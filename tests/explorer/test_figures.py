"""The figures hold the numbers, are valid for Plotly, and are the same every time."""

from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from explorer.states import SMALL
from whorl.explorer import compute, gallery, many, style, system, views
from whorl.explorer.presets import PRESETS
from whorl.explorer.views import ledger, loss, network, simplex, spiral
from whorl.explorer.views import many as many_view


@pytest.fixture(scope="module")
def run():
    return compute.run(replace(SMALL, shown="all", leak=0.1, omega=1.0))


@pytest.mark.parametrize("theme", list(style.THEMES))
@pytest.mark.parametrize(
    "preset",
    [
        pytest.param(one, id=one.name, marks=() if one.name == "cycle" else pytest.mark.slow)
        for one in PRESETS
    ],
)
def test_every_view_of_every_claim_is_valid(preset, theme):
    state = replace(preset.state, epochs=2, frame=3)
    drawn = (
        gallery.paths(state, style.THEMES[theme])["figures"]
        | gallery.picture(state, style.THEMES[theme])["figures"]
    )
    drawn |= gallery.instant(state, style.THEMES[theme])["figures"]
    empty = {"many"} if state.turns else {"many", "ledger", "effect"}
    assert set(drawn) == {view.place for view in views.of(state.system)} - empty
    for figure in drawn.values():
        go.Figure(figure.to_dict())  # looks at every property


@pytest.mark.slow
def test_a_graph_is_drawn_with_every_edge():
    state = replace(SMALL, system="graph")
    figure = gallery.drawn(state, "picture", style.LIGHT)["network"]
    go.Figure(figure.to_dict())
    edges = [one for one in figure.data if one.mode == "lines"]
    assert len(edges) == len(system.looped(state).edges)


def test_a_figure_is_a_function_of_its_arguments(run):
    assert (
        simplex.figure(run, 4, style.LIGHT).to_json()
        == simplex.figure(run, 4, style.LIGHT).to_json()
    )


def test_streams_are_as_wide_as_what_they_carry(run):
    layers, flows = [layer[3] for layer in run.layers], [flow[3] for flow in run.flows]
    streams, nodes = network.shapes(layers, flows, 3)
    widths = []
    for x, y in streams:
        for start in range(0, len(x), 25):
            widths.append(y[start] - y[start + 23])
    assert sum(widths) == pytest.approx(len(layers), abs=2e-3)  # all the flow passes each layer
    assert np.nansum(np.isnan(nodes[0])) == sum(len(flow) for flow in flows)


def test_the_simplex_shows_both_paths_and_the_target(run):
    named = {trace.name: trace for trace in simplex.figure(run, 5, style.LIGHT).data}
    assert {"reciprocal", "turning", "target", "start"} <= set(named)
    np.testing.assert_allclose(
        [named["target"].a[0], named["target"].b[0], named["target"].c[0]], run.target
    )
    np.testing.assert_allclose(named["turning"].a[-1], run.learner[5, 0])


def test_a_law_that_cannot_turn_has_one_path():
    still = compute.run(replace(SMALL, law="leaky", leak=0.1))
    assert "turning" not in {trace.name for trace in simplex.figure(still, 5, style.LIGHT).data}


def test_the_spiral_writes_its_eigenvalues():
    turning = compute.run(replace(SMALL, omega=2.0))
    assert (
        spiral.figure(turning, 0, style.LIGHT).layout.annotations[0].text == "eigenvalues  1 ± 2 i"
    )
    assert (
        "±"
        not in spiral.figure(compute.run(replace(SMALL, law="direct")), 0, style.LIGHT)
        .layout.annotations[0]
        .text
    )


def test_the_thin_line_is_the_exponential_of_the_loop():
    path = spiral.continuous(np.array([[1.0, -2.0], [2.0, 1.0]]), np.array([1.0, 0.0]), steps=40)
    times = np.linspace(0, 4, 41)
    np.testing.assert_allclose(
        path,
        np.exp(-times)[:, None] * np.column_stack([np.cos(2 * times), -np.sin(2 * times)]),
        atol=1e-12,
    )


def test_the_waterfall_leads_from_one_loss_to_the_other(run):
    (bars,) = ledger.figure(run, 9, style.LIGHT).data
    assert bars.x[0] == run.losses["native"][9]
    assert bars.base[4] + bars.x[4] == pytest.approx(run.losses["adaptive"][9], abs=1e-15)
    assert bars.x[5] == run.losses["adaptive"][9]


def test_losses_are_drawn_for_three_learners(run):
    lines = [trace for trace in loss.figure(run, 2, style.LIGHT).data if trace.mode == "lines"]
    assert [trace.name for trace in lines] == ["native", "step-matched", "adaptive"]
    np.testing.assert_array_equal(lines[2].y, run.losses["adaptive"])


def test_a_family_is_drawn_as_bands_or_not_at_all():
    gaps = np.cumsum(np.random.default_rng(0).normal(size=(300, 13)), axis=1)
    drawn = many_view.figure(many.Many(gaps), 12, style.LIGHT)
    assert f"{100 * np.mean(gaps[:, -1] > 0):.0f} % of 300" in drawn.layout.annotations[0].text
    assert many_view.figure(many.Many(np.zeros((0, 0))), 0, style.LIGHT) is None
    go.Figure(drawn.to_dict())


def test_moving_parts_carry_every_moment(run):
    moving = [trace.meta for trace in loss.figure(run, 0, style.LIGHT).data if trace.meta]
    assert len(moving) == 3
    assert all(len(meta["at"]["y"]) == run.made + 1 for meta in moving)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.5, "−0.5"), (1234.6, "1235"), (1.5e-7, "1.5×10<sup>−7</sup>")],
)
def test_numbers_read_well(value, text):
    assert style.number(value) == text
