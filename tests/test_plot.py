"""Pictures say what the objects they were drawn from say."""

import itertools

import numpy as np
import pytest

import whorl as wh


@pytest.fixture(scope="module")
def account():
    net, task = wh.Network.random((3, 3, 3), imbalance=8.0, floor=0.1, seed=3), wh.Task.random(3, 3, seed=103)
    return wh.train(net, task.inputs, task.targets, policy=wh.adaptive(0.2), epochs=5, seed=1).ledger


def test_a_waterfall_leads_from_one_loss_to_the_other(account):
    (axes,) = wh.plot.waterfall(account).axes
    bars = [bar for bar in axes.patches if bar.get_width() == pytest.approx(0.62)]
    heights = [bar.get_height() for bar in bars]
    terms = [float(getattr(account.sums, term)) for term in ("even", "handedness", "step", "drift")]
    np.testing.assert_allclose(heights, [float(account.native), *terms, float(account.nonreciprocal)])
    for before, after in itertools.pairwise(bars[1:5]):
        assert after.get_y() == pytest.approx(before.get_y() + before.get_height())
    assert [label.get_text() for label in axes.get_xticklabels()][1:5] == ["even", "handedness", "step", "drift"]


def test_a_waterfall_keeps_every_label_inside_its_axes(account):
    figure = wh.plot.waterfall(account)
    figure.canvas.draw()
    (axes,) = figure.axes
    box = axes.get_window_extent()
    for text in axes.texts:
        extent = text.get_window_extent()
        assert box.y0 <= extent.y0
        assert extent.y1 <= box.y1
