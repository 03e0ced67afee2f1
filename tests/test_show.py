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
    "bounds of a rate": lambda: wh.rate_bounds(wh.response(net, x)),
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


def test_one_of_a_thing_is_not_said_in_the_plural():
    net, task = wh.Network([np.full((3, 1), 1 / 3)]), wh.Task.random(1, 3, seed=0)
    rule, rows = wh.natural_gradient(), ([[1.0]], [[0.2, 0.3, 0.5]])
    run = wh.learn(net, *rows, rule=rule, scale=0.1, epochs=1, seed=0)
    response = wh.response(net, task.inputs, selected=0)
    for one in (net, task, run, response, wh.closed_loop(response, wh.direct())):
        assert not re.search(r"\b1 [a-z]+s\b", str(one))
    assert str(response) == "the response of 1 sample with 3 outputs, 2 directions"


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


@pytest.mark.parametrize("how", ["jit", "vmap"])
@pytest.mark.parametrize("name", ["network", "certificate", "pair", "bounds of a rate"])
def test_a_traced_result_has_words_too(name, how):
    numbers, rest = eqx.partition(MADE[name](), eqx.is_inexact_array)
    seen = []

    def traced(size):
        made = eqx.combine(jax.tree.map(lambda leaf: leaf * size.astype(leaf.dtype), numbers), rest)
        seen.extend([repr(made), str(made), made._repr_html_()])
        return size

    jax.jit(traced)(np.float64(1)) if how == "jit" else jax.vmap(traced)(np.ones(2))
    assert len(seen) == 3
    assert type(MADE[name]()).__name__ in seen[0]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (wh.leaky(0.1), "Leaky(mu=0.1)"),
        (wh.coupled_learning(), "CoupledLearning("),
        (wh.critical(gain=2.0), "Critical(gain=2, sense=1, tol=1e-10)"),
        (wh.adaptive(0.2), "Adaptive(scale=0.2, omega=1, gate=curvature_gate, law=Rotational("),
    ],
)
def test_laws_rules_and_policies_show_their_numbers(made, words):
    assert repr(made).startswith(words)
    assert "f64" not in repr(made)


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
