"""Pictures say what the objects they were drawn from say."""

import importlib
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import whorl as wh


@pytest.fixture(scope="module")
def account():
    net, task = (
        wh.Network.random((3, 3, 3), imbalance=8.0, floor=0.1, seed=3),
        wh.Task.random(3, 3, seed=103),
    )
    return wh.train(
        net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=5, seed=1
    ).ledger


def test_a_waterfall_leads_from_one_loss_to_the_other(account):
    (axes,) = wh.plot.waterfall(account).axes
    bars = [bar for bar in axes.patches if bar.get_height() == pytest.approx(0.62)]
    heights = [bar.get_width() for bar in bars]
    terms = [float(getattr(account.sums, term)) for term in ("even", "handedness", "step", "drift")]
    np.testing.assert_allclose(
        heights, [float(account.native), *terms, float(account.nonreciprocal)]
    )
    for before, after in itertools.pairwise(bars[1:5]):
        assert after.get_x() == pytest.approx(before.get_x() + before.get_width())
    assert [label.get_text() for label in axes.get_yticklabels()][1:5] == [
        "even",
        "handedness",
        "step",
        "drift",
    ]


def test_the_title_of_a_waterfall_says_who_ends_lower(account):
    (axes,) = wh.plot.waterfall(account).axes
    lower = "native" if float(account.gap) > 0 else "nonreciprocal"
    assert axes.get_title() == f"gap {float(account.gap):+.3g}: {lower} ends lower"
    assert "e-0" not in axes.texts[0].get_text()
    open_ended = eqx.tree_at(lambda one: one.nonreciprocal, account, account.start)
    (axes,) = wh.plot.waterfall(open_ended).axes
    assert "DOES NOT CLOSE" in axes.get_title()
    none = eqx.tree_at(lambda one: one.native, account, jnp.nan)
    with pytest.raises(ValueError, match="ledger must hold finite losses, but one is not"):
        wh.plot.waterfall(none)


def test_a_waterfall_of_many_pairs_shows_their_means(account):
    many = jax.tree.map(lambda one: jnp.stack([one, 3 * one]), account)
    (axes,) = wh.plot.waterfall(many).axes
    assert axes.patches[0].get_width() == pytest.approx(2 * float(account.native))
    assert axes.get_title().endswith("means over 2 pairs")


def test_no_label_of_a_waterfall_meets_another_on_a_small_grid(account):
    grid = Figure(figsize=(9, 5), layout="constrained").subplots(2, 3)
    axes = wh.plot.waterfall(account, ax=grid[0, 1])
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in [*axes.texts, *axes.get_yticklabels()]]
    others = [one.get_tightbbox() for one in grid.flat if one is not axes]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert not any(one.overlaps(other) for one in boxes for other in others)


def drawn(axes, gid):
    """The points of every line that carries a name, as (2, points)."""
    return [
        np.array([np.asarray(side, dtype=float) for side in line.get_data()])
        for line in axes.lines
        if line.get_gid() == gid
    ]


@pytest.fixture(scope="module")
def flows():
    """Residuals in closed form.

    One that only shrinks and one that turns three radians per unit time as it does.
    """
    times, start = np.linspace(0.0, 2.0, 9), np.array([0.15, -0.2, 0.05])
    net, turned = wh.Network([np.full((3, 1), 1 / 3)]), wh.quarter_turn(3) @ start
    paths = {
        name: np.exp(-times)[:, None]
        * (np.cos(rate * times)[:, None] * start - np.sin(rate * times)[:, None] * turned)
        for name, rate in (("straight", 0.0), ("turning", 3.0))
    }
    return {
        name: wh.Flow(jnp.asarray(times), net, jnp.asarray(path[:, None]), 1)
        for name, path in paths.items()
    }, [[0.4, 0.35, 0.25]]


def test_a_spiral_shows_the_residual_in_the_plane_and_the_prediction_on_the_simplex(flows):
    paths, targets = flows
    plane, ternary = wh.plot.spiral(paths, targets).axes
    lines = drawn(plane, "path")
    for line, flow in zip(lines, paths.values(), strict=True):
        np.testing.assert_allclose(
            np.hypot(*line), np.linalg.norm(np.asarray(flow.residual[:, 0]), axis=1)
        )
    directions = [np.unwrap(np.arctan2(line[1], line[0])) for line in lines]
    assert np.ptp(directions[0]) == pytest.approx(0, abs=1e-9)
    assert np.ptp(directions[1]) == pytest.approx(3.0 * 2.0)
    assert [text.get_text() for text in plane.get_legend().get_texts()] == ["straight", "turning"]
    ((star,),) = [drawn(ternary, "target")]
    away = [np.linalg.norm(line - star, axis=0) for line in drawn(ternary, "path")]
    np.testing.assert_allclose(away[0] / away[0][0], np.exp(-np.linspace(0, 2, 9)))
    np.testing.assert_allclose(away[1], away[0])


def test_a_single_flow_needs_no_name(flows):
    paths, targets = flows
    plane = wh.plot.spiral(paths["turning"], targets).axes[0]
    assert plane.get_legend() is None


def test_a_spiral_refuses_what_does_not_lie_on_a_triangle(flows, as_users_call_it):
    paths, targets = flows
    with pytest.raises(ValueError, match="flow must be a Flow, but it is 3"):
        wh.plot.spiral(3, targets)
    with pytest.raises(ValueError, match="flows must hold at least one flow, but it is empty"):
        wh.plot.spiral({}, targets)
    with pytest.raises(ValueError, match="sample must be 0, but it is 1"):
        wh.plot.spiral(paths, targets, sample=1)
    with pytest.raises(ValueError, match="targets must have rows of unit mass"):
        wh.plot.spiral(paths, [[0.4, 0.4, 0.4]])
    flat = eqx.tree_at(
        lambda flow: flow.residual, paths["turning"], paths["turning"].residual[:, :, :2]
    )
    with pytest.raises(
        ValueError, match="flows must have 3 outputs to lie on a triangle, but the flow has 2"
    ):
        wh.plot.spiral(flat, targets)


@pytest.mark.slow
def test_a_phase_portrait_is_coloured_by_circulation_and_says_how_much():
    (axes,) = wh.plot.phase_portrait(wh.rock_paper_scissors, points=25).axes
    (streams,) = [group for group in axes.collections if len(group.get_paths()) > 10]
    np.testing.assert_allclose(np.asarray(streams.get_array()), 6.0)
    assert axes.get_title().endswith(r"$d\omega = 6$ everywhere")
    # The exterior derivative is 6 in coordinates in which the triangle has area one half, and
    # sqrt(3)/4 in the picture.
    ((x, y),) = drawn(axes, "loop")
    area = np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) / 2
    printed = float(axes.get_title().split("=")[1].split("$")[0])
    assert printed == pytest.approx(6 * area * (0.5 / (np.sqrt(3) / 4)), rel=2e-3)


def test_the_streamlines_of_a_gradient_run_to_its_top_and_have_no_circulation():
    top = np.array([0.2, 0.5, 0.3])
    (axes,) = wh.plot.phase_portrait(lambda point: (top - point[0],), points=25).axes
    assert float(axes.get_title().split("=")[1].split("$")[0]) == 0.0
    (streams,) = [group for group in axes.collections if len(group.get_paths()) > 10]
    np.testing.assert_allclose(np.asarray(streams.get_array()), 0.0, atol=1e-12)


def test_only_a_field_whose_circulation_changes_needs_a_colour_bar():
    turning = np.array([0.0, 1.0, -1.0])
    changing = wh.plot.phase_portrait(lambda point: (point[0][0] ** 2 * turning,), points=12)
    assert "circulation" in changing.axes[1].get_ylabel()
    assert "everywhere" not in changing.axes[0].get_title()


def test_a_phase_portrait_refuses_a_field_that_is_none(as_users_call_it):
    with pytest.raises(ValueError, match="the field must be finite"):
        wh.plot.phase_portrait(lambda point: (point[0] / 0.0,))
    with pytest.raises(
        ValueError, match="points must be a whole number of at least 8, but it is 3"
    ):
        wh.plot.phase_portrait(wh.rock_paper_scissors, points=3)


def responses():
    return [
        wh.response(wh.Network.random((3,) * (depth + 1), floor=0.2, seed=seed), np.eye(3))
        for depth in (1, 3)
        for seed in (1, 2)
    ]


def test_a_spectrum_shows_the_modes_of_every_response_by_depth():
    made = responses()
    (axes,) = wh.plot.spectrum(made).axes
    for depth in (1, 3):
        for line, one in zip(
            drawn(axes, f"kept {depth}"),
            [one for one in made if one.system.depth == depth],
            strict=True,
        ):
            values = np.asarray(one.spectrum().eigenvalues)
            np.testing.assert_allclose(line[1], values / values[0], rtol=1e-6)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["depth 1", "depth 3"]


def test_a_spectrum_opens_what_does_not_count():
    made = responses()[-1]
    values = np.asarray(made.spectrum().eigenvalues)
    (axes,) = wh.plot.spectrum(made, tol=float(values[3] / values[0]) * 1.01).axes
    (kept,), (lost,) = (
        [line for line in axes.lines if line.get_gid() == f"{word} 3"] for word in ("kept", "lost")
    )
    assert (kept.get_ydata().size, lost.get_ydata().size) == (3, 3)
    assert lost.get_markerfacecolor() == "white"


def test_a_spectrum_reads_the_stored_table_of_a_structural_study():
    made = [one for one in responses() if one.system.depth == 3]
    rows, columns = (part.ravel() for part in np.indices((9, 9)))
    table = {
        "family": np.repeat([0, 1], 81),
        "depth": np.full(162, 3),
        "row": np.tile(rows, 2),
        "column": np.tile(columns, 2),
        "layer_sum": np.concatenate([np.asarray(one.dense()).ravel() for one in made]),
    }
    (axes,) = wh.plot.spectrum(table).axes
    (ours,) = wh.plot.spectrum(made).axes
    for found, expected in zip(drawn(axes, "kept 3"), drawn(ours, "kept 3"), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(
        ValueError,
        match="table must hold whole matrices over three outputs, but family 0 at depth 3 has 80 entries",
    ):
        wh.plot.spectrum({name: column[1:] for name, column in table.items()})
    with pytest.raises(ValueError, match=r"table must have the columns .*, but row is missing"):
        wh.plot.spectrum({name: column for name, column in table.items() if name != "row"})


def test_modes_that_are_zero_stand_at_a_tick_that_says_so_and_all_at_whole_numbers():
    made = wh.response(wh.Network.random((3, 3, 3), floor=0.2, seed=1), np.eye(3)[[0, 1, 1]])
    (axes,) = wh.plot.spectrum([made, *responses()]).axes
    lost = [line for line in axes.lines if line.get_gid() == "lost 2"]
    (floor,) = set(lost[0].get_ydata()[-2:])
    ticks = zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    assert [at for label, at in ticks if label.get_text() == "0"] == [floor]
    assert floor < 1e-11
    places = np.concatenate(
        [line.get_xdata() for line in axes.lines if line.get_marker() != "None"]
    )
    np.testing.assert_array_equal(places, np.round(places))
    (axes,) = wh.plot.spectrum(responses()).axes
    assert "0" not in [label.get_text() for label in axes.get_yticklabels()]


DIVIDER = wh.Circuit(
    [[0, 1], [1, 2], [1, 2], [0, 2]],
    [1e-3, 2e-3, 4e-3, 1e-9],
    sources=[0],
    outputs=[1],
    ground=[2],
    elements={3: wh.Diode()},
)


def gathered(axes, gid):
    return [one for one in [*axes.lines, *axes.collections, *axes.texts] if one.get_gid() == gid]


def test_a_circuit_shows_conductances_as_widths_and_what_nodes_are_for():
    names = ["in", "$x$", "gnd"]
    figure = wh.plot.circuit(DIVIDER, nodes=names, edges=["R1", "R2", "R3", "D1"])
    (axes,) = figure.axes
    widths = [line.get_linewidth() for line in gathered(axes, "edge")]
    assert widths[3] < widths[0] < widths[1] < widths[2]
    assert [line.is_dashed() for line in gathered(axes, "edge")] == [False] * 3 + [True]
    assert "1e-09 to 0.004 S (logarithmic)" in axes.get_title()
    assert [text.get_text() for text in gathered(axes, "name")] == ["R1", "R2", "R3", "D1"]
    assert [text.get_text() for text in axes.texts if text.get_gid() is None] == names
    (driven,), (read,) = (gathered(axes, role)[0].get_offsets() for role in ("input", "output"))
    assert driven[0] < read[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "input",
        "output",
        "ground",
    ]
    # Edges between the same two nodes do not lie on each other.
    middles = [line.get_xydata()[10] for line in gathered(axes, "edge")[1:3]]
    assert np.linalg.norm(middles[0] - middles[1]) > 0.1
    figure.draw_without_rendering()


def test_a_circuit_of_one_conductance_is_drawn_with_one_width():
    ring = wh.Circuit([[0, 1], [1, 2], [2, 0]], [2.0] * 3, sources=[0], outputs=[1], ground=[2])
    (axes,) = wh.plot.circuit(ring).axes
    assert len({line.get_linewidth() for line in gathered(axes, "edge")}) == 1
    assert axes.get_title() == "width: conductance, 2 S"


def test_a_circuit_that_cannot_be_drawn_is_refused_in_one_sentence(as_users_call_it):
    with pytest.raises(ValueError, match="system must be a Circuit, but it is 3"):
        wh.plot.circuit(3)
    with pytest.raises(ValueError, match="nodes must have one name each, 3, but there are 2"):
        wh.plot.circuit(DIVIDER, nodes=["a", "b"])
    chain = np.column_stack([np.arange(1000), np.arange(1, 1001)])
    large = wh.Circuit(chain, np.ones(1000), sources=[0], outputs=[5], ground=[1000])
    with pytest.raises(ValueError, match="at most 1000 nodes to be drawn, but it has 1001"):
        wh.plot.circuit(large)


def learned(record=True, epochs=4):
    net, task = wh.Network.random((3, 3, 3), seed=3), wh.Task.random(3, 3, seed=103)
    return wh.learn(
        net,
        task.inputs,
        task.targets,
        rule=wh.exponentiated_gradient(),
        scale=0.2,
        epochs=epochs,
        seed=0,
        record=record,
    )


def test_a_learning_curve_begins_at_the_start_and_has_a_line_per_learner():
    run = learned()
    (axes,) = wh.plot.learning_curve(run).axes
    ((updates, losses),) = drawn(axes, "loss")
    np.testing.assert_array_equal(updates, np.arange(run.made + 1))
    np.testing.assert_allclose(losses, [float(run.start), *np.asarray(run.losses)])
    assert axes.get_legend() is None
    net, task = wh.Network.random((3, 3, 3), seed=3), wh.Task.random(3, 3, seed=103)
    pair = wh.train(net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=4, seed=1)
    (axes,) = wh.plot.learning_curve({"one": run, "two": pair}).axes
    lines = drawn(axes, "loss")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "one",
        "two, nonreciprocal",
        "two, native",
    ]
    assert pair.losses is not None
    np.testing.assert_allclose(lines[1][1][1:], pair.losses[0])
    np.testing.assert_allclose(lines[2][1][1:], pair.losses[1])


@pytest.mark.parametrize(
    ("losses", "scale", "label"),
    [
        ([1.0, 0.9, 0.8], "linear", "loss"),
        ([1.0, 1e-3, 0.0], "log", "loss (0 in gaps)"),
        ([0.0, 0.0, 0.0], "linear", "loss"),
        ([np.nan, np.inf, np.nan], "linear", "loss"),
        ([], "linear", "loss"),
    ],
)
def test_a_learning_curve_is_logarithmic_where_losses_span_decades(losses, scale, label):
    run = eqx.tree_at(lambda one: one.losses, learned(), jnp.asarray(losses, dtype=jnp.float32))
    figure = wh.plot.learning_curve(run)
    (axes,) = figure.axes
    assert (axes.get_yscale(), axes.get_ylabel()) == (scale, label)
    figure.draw_without_rendering()


def test_a_learning_curve_refuses_what_kept_no_losses(as_users_call_it):
    with pytest.raises(ValueError, match="result a must hold its losses, which record=True keeps"):
        wh.plot.learning_curve({"a": learned(record=False, epochs=1)})
    with pytest.raises(ValueError, match="result must be a Result, but it is 3"):
        wh.plot.learning_curve(3)
    with pytest.raises(ValueError, match="results must hold at least one result, but it is empty"):
        wh.plot.learning_curve({})


def loop(law, dtype=float):
    net = wh.Network.random((4, 3), floor=0.2, seed=2)
    net = wh.Network([np.asarray(layer, dtype=dtype) for layer in net.layers])
    return wh.closed_loop(wh.response(net, np.eye(4, dtype=dtype), selected=0), law)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eigenvalues_off_the_line_are_those_of_a_loop_that_turns(dtype, as_users_call_it):
    made = loop(wh.rotational(omega=2.0), dtype)
    (axes,) = wh.plot.eigenvalues(made).axes
    ((real, imaginary),) = drawn(axes, "rotates")
    values = np.asarray(wh.certify(made).eigenvalues)
    np.testing.assert_allclose(real + 1j * imaginary, values)
    assert axes.get_title() == "turns (2 identifiable)"
    (axes,) = wh.plot.eigenvalues(wh.certify(loop(wh.direct(), dtype))).axes
    assert not drawn(axes, "rotates")
    assert drawn(axes, "decays or grows only")[0].shape == (2, 2)
    with pytest.raises(ValueError, match="loop must be a Certificate or a ClosedLoop, but it is 3"):
        wh.plot.eigenvalues(3)


def test_a_forest_puts_each_published_value_among_ours():
    ours = {
        "gain": np.linspace(0, 1, 1001),
        "count": np.full(50, 25.0),
        "far": np.linspace(0, 1, 101),
    }
    figure = wh.plot.forest({"gain": 0.738, "count": 25, "far": -4.0}, ours)
    (axes,) = figure.axes
    marks = drawn(axes, "published")
    # The central 95 % of the first goes from 0.025 to 0.975, half of it is 0.475.
    assert marks[0][0, 0] == pytest.approx((0.738 - 0.5) / 0.475)
    assert marks[1][0, 0] == 0
    assert marks[2][0, 0] == -3
    assert [line.get_marker() for line in axes.lines if line.get_gid() == "published"] == [
        "D",
        "D",
        "<",
    ]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["gain", "count", "far"]
    texts = [text.get_text() for text in axes.texts]
    assert {"73.8 %", "50.0 %", "0.0 %, outside", "25", "-4"} <= set(texts)
    np.testing.assert_allclose(drawn(axes, "central 95")[0][0], [-1, 1])


def test_a_forest_refuses_what_it_has_nothing_to_compare_with(as_users_call_it):
    with pytest.raises(ValueError, match="distributions must hold auc, but they hold gain"):
        wh.plot.forest({"auc": 1.0}, {"gain": [1.0]})
    with pytest.raises(
        ValueError, match="distribution of auc must be a row of finite numbers, but it is not"
    ):
        wh.plot.forest({"auc": 1.0}, {"auc": [np.nan]})
    with pytest.raises(ValueError, match="distribution of auc must be a row of finite numbers"):
        wh.plot.forest({"auc": 1.0}, {"auc": ["a"]})
    with pytest.raises(ValueError, match=r"published must be values by name, but it is \[1\]"):
        wh.plot.forest([1], {})
    with pytest.raises(ValueError, match="published must hold at least one value, but it is empty"):
        wh.plot.forest({}, {})


def pictures(account, flows):
    """Every picture by name: how many axes it needs, and a function that draws it."""
    paths, targets = flows
    ours = {"gain": np.linspace(0, 1, 101)}
    walk = wh.Graph.random(8, 20, inputs=2, outputs=3, seed=0)
    return {
        "waterfall": lambda ax: wh.plot.waterfall(account, ax=ax),
        "phase_portrait": lambda ax: wh.plot.phase_portrait(
            wh.rock_paper_scissors, points=9, ax=ax
        ),
        "spectrum": lambda ax: wh.plot.spectrum(responses(), ax=ax),
        "forest": lambda ax: wh.plot.forest({"gain": 0.7}, ours, ax=ax),
        "graph": lambda ax: wh.plot.graph(walk, [[0.5, 0.5]], ax=ax),
        "circuit": lambda ax: wh.plot.circuit(DIVIDER, ax=ax),
        "learning_curve": lambda ax: wh.plot.learning_curve(learned(), ax=ax),
        "eigenvalues": lambda ax: wh.plot.eigenvalues(loop(wh.rotational()), ax=ax),
        "spiral": lambda ax: wh.plot.spiral(paths, targets, axes=ax),
    }


@pytest.mark.slow
def test_every_picture_is_drawn_on_a_grid_of_ones_own(account, flows):
    importlib.import_module("mpltern")  # brings the projection
    figure = Figure(figsize=(12, 8), layout="constrained")
    for number, (name, draw) in enumerate(pictures(account, flows).items()):
        ax = figure.add_subplot(2, 5, number + 1)
        if name == "spiral":
            ax = (ax, figure.add_subplot(2, 5, 10, projection="ternary"))
        before = len(figure.axes)
        assert draw(ax) is ax
        assert len(figure.axes) == before
        assert all(one.has_data() for one in np.atleast_1d(np.asarray(ax, dtype=object)))
    figure.canvas.draw()


@pytest.mark.slow
def test_every_picture_shows_itself_in_a_notebook_whatever_the_backend(account, flows):
    for draw in pictures(account, flows).values():
        assert draw(None)._repr_png_().startswith(b"\x89PNG")


def test_a_picture_follows_the_current_style(account):
    import matplotlib as mpl
    import matplotlib.style

    with mpl.style.context(["dark_background", {"figure.figsize": (3, 3), "font.size": 6}]):
        figure = wh.plot.waterfall(account)
        (axes,) = figure.axes
        assert figure.get_facecolor()[:3] == (0, 0, 0)
        assert mpl.colors.to_hex(axes.lines[-1].get_color()) == "#ffffff"
        assert list(figure.get_size_inches()) == [3, 3]
        assert axes.texts[0].get_fontsize() < 6


def test_axes_that_cannot_be_drawn_on_are_refused_in_one_sentence(account, flows):
    drawn, grid = pictures(account, flows), Figure().subplots(1, 2)
    with pytest.raises(ValueError, match="ax must be one matplotlib Axes, but it is ndarray"):
        drawn["waterfall"](grid)
    with pytest.raises(ValueError, match='projection="ternary", but its projection is "rect'):
        drawn["spiral"](grid)
    with pytest.raises(ValueError, match="axes must be two, but there are 1"):
        drawn["spiral"](grid[:1])
