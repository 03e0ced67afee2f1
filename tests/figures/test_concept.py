"""The concept is computed.

What its arrows and paths say about gradient and turn is true of the networks behind them.
"""

import numpy as np
import pytest

import whorl as wh
from whorl.study.figures import concept

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figure():
    return concept.draw()


def losses(path):
    return [
        float(wh.loss(concept.two_shares(*state), concept.SOURCE, concept.TARGET))
        for state in zip(*path, strict=True)
    ]


def test_the_network_conserves_its_flow(figure):
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts if "Sigma" in text.get_text()] == [
        r"$\Sigma=1$"
    ] * 3
    edges = [line.get_linewidth() / 12 for line in axes.lines if line.get_gid() == "edge"]
    assert sum(edges[:9]) == pytest.approx(1)
    assert sum(edges[9:]) == pytest.approx(1)


def test_both_paths_start_together_descend_all_the_way_and_one_of_them_turns(figure):
    paths = [
        line.get_data() for axes in figure.axes for line in axes.lines if line.get_gid() == "path"
    ]
    assert len(paths) == 2
    for path in paths:
        np.testing.assert_allclose([side[0] for side in path], concept.START)
        assert np.all(np.diff(losses([side[::8] for side in path])) < 0)
    np.testing.assert_allclose(
        losses([side[::20] for side in paths[0]]),
        losses([side[::20] for side in paths[1]]),
        rtol=1e-6,
    )
    lengths = [np.hypot(*np.diff(path)).sum() for path in paths]
    assert lengths[1] > 1.5 * lengths[0]


def test_the_landscape_is_the_loss_of_the_network():
    grid = np.array([0.2, 0.7])
    expected = [
        [float(wh.loss(concept.two_shares(a, b), concept.SOURCE, concept.TARGET)) for a in grid]
        for b in grid
    ]
    np.testing.assert_allclose(concept.loss_over(grid), expected)


def test_the_mean_of_both_turns_lies_on_the_side_that_the_coefficient_says(figure):
    for axes in figure.axes:
        diamonds = [
            line
            for line in axes.lines
            if line.get_label() == "mean of both turns" or line.get_marker() == "D"
        ]
        if diamonds:
            height = float(diamonds[0].get_ydata()[0])
            assert (height < 0) == ("lowers" in axes.get_title(loc="left"))
            printed = float(axes.get_title(loc="left").split("=")[1].split("$")[0])
            assert height == pytest.approx(printed, rel=0.02)


def test_turns_were_accepted_first_and_the_states_are_apart_in_the_end(figure):
    pair = concept.coupled()
    amounts = np.asarray(pair.updates.amount)
    assert amounts[0] > 0
    assert amounts[-1] == 0
    apart = [line.get_xdata() for line in figure.axes[-1].lines if line.get_gid() == "apart"]
    assert len(apart) == amounts.size + 1
    assert abs(np.diff(apart[0])[0]) == 0
    assert abs(np.diff(apart[-1])[0]) > 0.01


def test_it_is_labelled_as_an_illustration(figure, laid_out):
    laid_out(figure)
    assert any(text.get_text().startswith("Illustration") for text in figure.texts)
