"""The paper's figures show what the tables say: looked at in the artists, not in the pixels."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.container import ErrorbarContainer

from whorl.study.figures import style
from whorl.study.kinds.horizon import figure as horizon_figure
from whorl.study.kinds.structural import figure as structural_figure
from whorl.study.kinds.threshold import figure as threshold_figure


def by_gid(axes, gid):
    return [line for line in axes.lines if line.get_gid() == gid]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def words(axes):
    return [text.get_text() for text in axes.texts]


def bars(axes):
    """Of every row of error bars.

    Its points and their style, and the two ends of each bar along each axis.
    """
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            points: Any = container.lines[0]
            for line in container.lines[2]:
                yield points, np.array(line.get_segments())


@pytest.mark.parametrize(("single", "centimetres"), [(False, 17.8), (True, 8.6)])
@pytest.mark.parametrize("kind", ["structural", "threshold", "horizon"])
def test_a_figure_has_the_width_of_one_or_two_columns_of_a_journal_and_keeps_its_words_apart(
    kind, single, centimetres, request, laid_out
):
    module = {
        "structural": structural_figure,
        "threshold": threshold_figure,
        "horizon": horizon_figure,
    }[kind]
    figure = laid_out(module.draw(request.getfixturevalue(kind), single=single))
    assert figure.get_figwidth() * 2.54 == pytest.approx(centimetres)
    letters = [axes.get_title(loc="left").split("$")[1] for axes in figure.axes]
    assert letters == [rf"\bf({name})" for name in "abcd"[: len(letters)]]


def test_structural_shows_every_factorisation_residual_and_zeros_at_a_labelled_floor(structural):
    axes = structural_figure.draw(structural).axes[0]
    rows = structural["operators"]
    for depth in (2, 6):
        (line,) = by_gid(axes, f"depth {depth}")
        expected = rows["factorisation"][(rows["depth"] == depth) & (rows["factorisation"] > 0)]
        np.testing.assert_array_equal(np.sort(line.get_ydata()), np.sort(expected))
    (zero,) = by_gid(axes, "zero 6")
    assert zero.get_ydata().size == 1
    assert (
        axes.get_ylim()[0]
        < float(np.asarray(zero.get_ydata())[0])
        < rows["factorisation"][rows["factorisation"] > 0].min()
    )
    assert "exactly 0" in words(axes)
    assert any(np.all(np.asarray(line.get_ydata()) == 1e-10) for line in axes.lines)


def test_structural_draws_the_tolerance_of_the_design(structural):
    axes = structural_figure.draw(structural, tolerance=1e-9).axes[0]
    assert any(np.all(np.asarray(line.get_ydata()) == 1e-9) for line in axes.lines)
    assert "tolerance $10^{-9}$" in words(axes)


def test_structural_has_no_floor_where_no_residual_is_zero(structural):
    structural["operators"]["factorisation"][:] = 2e-16
    assert "exactly 0" not in words(structural_figure.draw(structural).axes[0])


def test_structural_fills_full_rank_and_opens_the_rest(structural):
    axes = structural_figure.draw(structural).axes[1]
    rows = structural["operators"]
    lines = {line.get_label(): line for line in axes.lines}
    for rank, filled in ((6, True), (5, False), (4, False)):
        line = lines[f"rank {rank}"]
        np.testing.assert_array_equal(
            np.sort(line.get_ydata()), np.sort(rows["condition"][rows["rank"] == rank])
        )
        assert (to_rgba(line.get_markerfacecolor()) != to_rgba("white")) == filled
    assert lines["rank 4"].get_marker() != lines["rank 5"].get_marker()
    medians = [segment[0][1] for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(
        medians, [np.median(rows["condition"][rows["depth"] == depth]) for depth in (2, 6)]
    )


def test_structural_counts_every_operator_once(structural):
    axes = structural_figure.draw(structural).axes[2]
    rows = structural["operators"]
    assert sum(patch.get_height() for patch in axes.patches) == rows["rank"].size
    assert sorted(words(axes)) == ["1", "2", "2", "5"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2", "6"]


def test_structural_guides_have_slope_two_and_the_fits_are_printed(structural):
    axes = structural_figure.draw(structural).axes[3]
    for example in ("negative", "positive"):
        (guide,) = by_gid(axes, f"guide {example}")
        assert np.diff(np.log(guide.get_ydata())) / np.diff(
            np.log(guide.get_xdata())
        ) == pytest.approx(2)
    assert any("1.990000" in text for text in legend(axes))
    assert any("2.010000" in text for text in legend(axes))
    (points,) = [line for line in axes.lines if "1.990000" in str(line.get_label())]
    np.testing.assert_array_equal(
        points.get_ydata(), np.abs(structural["curvature"]["even_difference"][:3])
    )


def test_threshold_shows_shares_with_binomial_errors(threshold):
    axes = threshold_figure.draw(threshold).axes[0]
    rows = threshold["configurations"]
    assert legend(axes) == ["depth 1 (L1)", "depth 4 (L4-b3)"]
    for (points, segments), depth in zip(bars(axes), (1, 4), strict=True):
        shares = np.array(
            [
                rows["favourable"][(rows["depth"] == depth) & (rows["beta"] == beta)].mean()
                for beta in (0, 2, 8)
            ]
        )
        np.testing.assert_allclose(points.get_ydata(), shares)
        np.testing.assert_allclose(points.get_xdata(), [0, 2, 8], atol=0.3)
        np.testing.assert_allclose(
            np.ptp(segments[:, :, 1], axis=1) / 2, np.sqrt(shares * (1 - shares) / 8)
        )


def test_threshold_shows_every_configuration_by_its_true_sign_and_rings_the_wrong_ones(threshold):
    axes = threshold_figure.draw(threshold).axes[1]
    rows = threshold["configurations"]
    helps, hurts, rings = (
        group
        for group in axes.collections
        if group.get_label() and not group.get_label().startswith("_")
    )
    wrong = rows["favourable"] != rows["predicted"]
    assert 0 < wrong.sum() < wrong.size
    for group, where in (
        (helps, rows["favourable"] == 1),
        (hurts, rows["favourable"] == 0),
        (rings, wrong),
    ):
        np.testing.assert_array_equal(
            group.get_offsets(), np.stack([rows["ratio"], rows["coefficient"]], axis=1)[where]
        )
    assert rings.get_facecolor().size == 0
    assert f"misclassified: {wrong.sum()} of {wrong.size}" in legend(axes)
    low, high = axes.get_xlim()
    assert low < rows["ratio"].min()
    assert rows["ratio"].max() < high
    assert any(
        "AUC 0.950\n[0.900, 0.980]\naccuracy 0.900\n[0.850, 0.930]" in text for text in words(axes)
    )


def test_threshold_says_so_where_there_is_no_area(threshold):
    keep = ~np.char.startswith(threshold["statistics"]["name"].astype(str), "auc")
    threshold["statistics"] = {
        name: column[keep] for name, column in threshold["statistics"].items()
    }
    assert any("AUC undefined" in text for text in words(threshold_figure.draw(threshold).axes[1]))


def test_horizon_joins_the_two_gaps_of_every_trial(horizon):
    axes = horizon_figure.draw(horizon).axes[0]
    rows = horizon["trials"]
    lines = by_gid(axes, "trial")
    assert len(lines) == 4
    for number, line in enumerate(lines):
        gaps = [
            rows["gap"][(rows["trial"] == number) & (rows["policy"] == policy)][0]
            for policy in ("step_matched", "adaptive")
        ]
        np.testing.assert_array_equal(line.get_ydata(), gaps)
    found = dict(zip(horizon["statistics"]["name"], horizon["statistics"]["value"], strict=True))
    for (points, segments), policy in zip(bars(axes), ("step_matched", "adaptive"), strict=True):
        assert points.get_ydata()[0] == found[f"gap.{policy}"]
        np.testing.assert_allclose(
            segments[0, :, 1], [found[f"gap.{policy}.lower"], found[f"gap.{policy}.upper"]]
        )


def test_horizon_shows_both_terms_and_what_drift_takes_back(horizon):
    axes = horizon_figure.draw(horizon).axes[1]
    found = dict(zip(horizon["statistics"]["name"], horizon["statistics"]["value"], strict=True))
    order = [
        f"{term}.{policy}" for term in ("step", "drift") for policy in ("step_matched", "adaptive")
    ]
    np.testing.assert_allclose(
        [patch.get_height() for patch in axes.patches], [found[name] for name in order]
    )
    for policy in ("step_matched", "adaptive"):
        (dots,) = by_gid(axes, f"drift {policy}")
        rows = horizon["trials"]
        np.testing.assert_array_equal(dots.get_ydata(), rows["drift"][rows["policy"] == policy])


def test_horizon_shows_every_condition_with_its_interval(horizon):
    axes = horizon_figure.draw(horizon).axes[2]
    rows = horizon["conditions"]
    order = np.lexsort((rows["scale"], rows["depth"], rows["beta"]))
    shown = list(bars(axes))
    assert len(shown) == 12
    looks = set()
    for (points, segments), row in zip(shown, order, strict=True):
        assert points.get_xdata()[0] == rows["gain"][row]
        np.testing.assert_allclose(segments[0, :, 0], [rows["lower"][row], rows["upper"][row]])
        looks.add((points.get_color(), points.get_marker(), rows["depth"][row], rows["scale"][row]))
    assert (
        len({(colour, depth) for colour, _, depth, _ in looks})
        == len({colour for colour, *_ in looks})
        == 2
    )
    assert (
        len({(marker, scale) for _, marker, _, scale in looks})
        == len({marker for _, marker, *_ in looks})
        == 2
    )
    assert legend(axes) == ["depth 1", "depth 4", "$s=0.1$", "$s=0.2$"]


def test_horizon_takes_gains_that_lose(horizon, laid_out):
    for name in ("gain", "lower", "upper"):
        horizon["conditions"][name] -= 0.002
    axes = laid_out(horizon_figure.draw(horizon)).axes[2]
    assert axes.get_xlim()[0] < horizon["conditions"]["lower"].min()


@pytest.mark.parametrize(
    ("kind", "table", "column", "spoil", "sentence"),
    [
        (
            "structural",
            "operators",
            "factorisation",
            lambda c: c * np.nan,
            "column factorisation of table operators must be finite",
        ),
        (
            "structural",
            "operators",
            "condition",
            lambda c: c * 0,
            "column condition of table operators must be at least 1, but its smallest",
        ),
        (
            "structural",
            "operators",
            "rank",
            None,
            "table operators must have the column rank, but it has family",
        ),
        (
            "structural",
            "statistics",
            "name",
            lambda c: np.array(["a", "b"]),
            "table statistics must have the row slope.negative",
        ),
        (
            "structural",
            "curvature",
            "step",
            lambda c: c[:-1],
            "table curvature must have rows in all columns alike",
        ),
        (
            "threshold",
            "configurations",
            "favourable",
            lambda c: 1 - c,
            "column favourable of table configurations must follow from its row",
        ),
        (
            "threshold",
            "configurations",
            "predicted",
            lambda c: 1 - c,
            "column predicted of table configurations must follow from its row",
        ),
        (
            "horizon",
            "trials",
            "trial",
            lambda c: c * 0,
            "table trials must have every trial once under each of step_matched, adaptive",
        ),
        (
            "horizon",
            "conditions",
            "lower",
            lambda c: c * 10,
            "table conditions must have lower below upper, but row 0 has not",
        ),
    ],
)
def test_a_corrupted_table_is_refused(kind, table, column, spoil, sentence, request):
    tables = request.getfixturevalue(kind)
    module = {
        "structural": structural_figure,
        "threshold": threshold_figure,
        "horizon": horizon_figure,
    }[kind]
    if spoil is None:
        del tables[table][column]
    else:
        tables[table][column] = spoil(tables[table][column])
    with pytest.raises(ValueError, match=sentence):
        module.draw(tables)


def test_a_missing_table_is_refused(horizon):
    del horizon["conditions"]
    with pytest.raises(
        ValueError, match="tables must hold conditions, but they are statistics, trials"
    ):
        horizon_figure.draw(horizon)


def test_points_beside_each_other_stand_apart_in_a_fixed_order():
    for count in (1, 2, 3, 7, 25, 50):
        places = style.spread(count)
        assert np.unique(places).size == count
        np.testing.assert_array_equal(places, style.spread(count))


def test_drawing_leaves_the_settings_of_matplotlib_alone(threshold):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    threshold_figure.draw(threshold)
    assert dict(mpl.rcParams) == before
