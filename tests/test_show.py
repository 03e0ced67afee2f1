"""What a notebook shows of a result is what `print` says, and it is short."""

import functools
import re

import equinox as eqx
import jax
import numpy as np
import pytest

import whorl as wh
from whorl import measured

net = wh.Network.random((3, 3, 3), seed=3)
task = wh.Task.random(3, 3, seed=103)
x, y = task.inputs, task.targets


@functools.cache
def finding():
    residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
    noise = 0.001 * np.random.default_rng(0).standard_normal((36, 3))
    return measured.certify(residuals, residuals + noise)


@functools.cache
def pair():
    return wh.train(net, x, y, policy=wh.adaptive(0.1), epochs=2, seed=0)


@functools.cache
def many():
    data = [np.stack([rows, rows]) for rows in (x, y)]
    order = {"schedule": [[0, 1], [2, 3]], "turns": [[1, 1], [-1, 1]]}
    return wh.train_many(wh.stack([net, net]), *data, policy=wh.native(0.1), **order)


@functools.cache
def loop():
    return wh.closed_loop(wh.response(net, x), wh.rotational(0.5, base=wh.leaky(0.1)))


MADE = {
    "network": lambda: net,
    "task": lambda: task,
    "response": lambda: wh.response(net, x),
    "spectrum": lambda: wh.response(net, x).spectrum(),
    "loop": loop,
    "certificate": lambda: wh.certify(loop()),
    "dissipation": lambda: wh.dissipation(loop(), wh.residual(net, x, y)),
    "preconditioner": lambda: wh.preconditioner(wh.response(net, x), wh.direct()),
    "curvature": lambda: wh.curvature(net, x, y, selected=0),
    "pair": pair,
    "ledger": lambda: pair().ledger,
    "terms": lambda: pair().updates.terms,
    "outcome": lambda: pair().updates.outcome,
    "updates": lambda: pair().updates,
    "ensemble": many,
    "finding": finding,
    "loop of a finding": lambda: finding().loops[0],
}


@pytest.mark.parametrize("name", MADE)
def test_a_result_shows_what_print_says_in_a_screenful(name):
    made = MADE[name]()
    assert repr(made) == str(made)
    assert len(repr(made).splitlines()) <= 24
    assert "f64[" not in repr(made)
    assert " object at " not in repr(made)
    assert made._repr_html_().startswith(("<p", "<div", "<section", "<table"))


def test_a_table_holds_the_numbers_of_the_text():
    ledger = pair().ledger
    rows = re.findall(r"<tr><th>(.*?)</th>(.*?)</tr>", ledger._repr_html_())
    assert [name for name, _ in rows[2:6]] == ["even", "handedness", "step", "drift"]
    total = sum(float(re.findall(r"<td>([-+.e\d]+)</td>", cells)[-1]) for _, cells in rows[2:6])
    assert total == pytest.approx(float(ledger.gap), abs=1e-9)


def test_a_traced_result_has_a_repr_too():
    seen = []
    jax.jit(lambda given: seen.append(repr(given)) or given.layers[0])(net)
    assert "Network" in seen[0]


def test_markup_in_a_name_is_shown_and_not_obeyed():
    class Strange(wh.Task):
        def __str__(self):
            return "a <b>bold</b> name\n  size  <i>"

    html = Strange(x, y)._repr_html_()
    assert (
        html
        == "<p>a &lt;b&gt;bold&lt;/b&gt; name</p><table><tr><th>size</th><td>&lt;i&gt;</td></tr></table>"
    )
    assert isinstance(Strange(x, y), eqx.Module)
