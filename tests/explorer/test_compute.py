"""What the page shows is what the library says.

By the short way, without padding, numbers for words, or caches.
"""

from dataclasses import replace

import numpy as np
import pytest

import whorl as wh
from explorer.states import SMALL
from whorl.explorer import compute, cycle, many, moment, programs, recipe, system
from whorl.explorer.presets import BY_NAME
from whorl.explorer.state import State
from whorl.learning.schedule import fair_turns, permuted


def remade(state):
    """Run the script that a visitor downloads, and return its names."""
    names = {}
    exec(compile(recipe.python(state), "recipe", "exec"), names)  # the script under test
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    "state",
    [
        SMALL,
        pytest.param(replace(SMALL, depth=1, law="leaky", leak=0.1), marks=pytest.mark.slow),
        replace(
            SMALL,
            shown="all",
            turn="fair",
            gate="curvature",
            leak=0.1,
            imbalance=4.0,
            policy="step_matched",
            sample=4,
            frame=7,
        ),
        pytest.param(
            replace(SMALL, law="direct", policy="native", turn="minus"), marks=pytest.mark.slow
        ),
        pytest.param(
            replace(SMALL, system="column", turn="alternating", omega=1.0, frame=12),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["rotational", "leaky", "step-matched", "direct", "column"],
)
def test_the_script_remakes_the_state(state, capsys):
    pair, seen = remade(state)["pair"], compute.run(state)
    learner = "adaptive" if state.policy == "native" else state.policy
    np.testing.assert_allclose(
        pair.updates.losses[1], seen.losses["native"][1:], rtol=1e-9, atol=1e-13
    )
    np.testing.assert_allclose(
        pair.updates.losses[0],
        seen.losses[learner if state.policy != "native" else "native"][1:],
        rtol=1e-9,
        atol=1e-13,
    )
    np.testing.assert_allclose(
        [float(term) for term in vars(pair.ledger.sums).values()],
        seen.accounts()[-1],
        rtol=1e-7,
        atol=1e-12,
    )
    first = np.asarray(pair.states[0].layers[-1])[:, :, 0]
    np.testing.assert_allclose(first, seen.layers[-1][:, :, 0], rtol=1e-9, atol=1e-12)
    printed = capsys.readouterr().out
    assert "This loop is" in printed
    assert moment.moment(state).certificate.splitlines()[0] in printed


@pytest.mark.slow
def test_the_script_of_the_cycle_remakes_its_orbit():
    state = replace(BY_NAME["cycle"].state, epochs=2, frame=0)
    np.testing.assert_allclose(remade(state)["orbit"], cycle.orbit(state).shares, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_a_padded_network_is_the_network(depth):
    state = replace(SMALL, depth=depth, width=4, imbalance=3.0)
    net, inputs = system.network(state), system.data(state)[0]
    full = programs.padded(net)
    assert full.depth == 6
    np.testing.assert_allclose(wh.predict(full, inputs), wh.predict(net, inputs), atol=1e-15)
    np.testing.assert_allclose(
        wh.response(full, inputs).dense(), wh.response(net, inputs).dense(), atol=1e-15
    )
    for seen, wanted in zip(programs.unpadded(full.layers, net.depth), net.layers, strict=True):
        np.testing.assert_array_equal(seen, wanted)


@pytest.mark.slow
def test_the_account_of_every_moment_is_the_gap():
    seen = compute.run(replace(SMALL, shown="all"))
    np.testing.assert_allclose(
        seen.accounts().sum(axis=1), seen.losses["adaptive"] - seen.losses["native"], atol=1e-15
    )


@pytest.mark.slow
def test_the_loop_turns_as_the_law_says():
    seen = compute.run(replace(SMALL, alpha=1.5, omega=2.0))
    np.testing.assert_allclose(
        sorted(seen.eigenvalues[5], key=np.imag), [1.5 - 2j, 1.5 + 2j], atol=1e-9
    )
    assert np.abs(compute.run(replace(SMALL, law="direct")).eigenvalues.imag).max() == 0


@pytest.mark.slow
def test_the_two_examples_of_the_paper_are_on_the_map():
    values = {
        name: moment.moment(replace(BY_NAME[name].state, epochs=2, frame=0))
        for name in ("helps", "hurts")
    }
    assert "coefficient -0.9271875" in values["helps"].curvature
    assert "coefficient 0.02666667" in values["hurts"].curvature
    assert values["helps"].grid.min() < 0 < values["helps"].grid.max()


@pytest.mark.slow
def test_the_first_of_the_family_is_the_network_that_is_shown():
    state = replace(SMALL, depth=1, shown="all", turn="fair", leak=0.1, omega=1.0)
    family, seen = many.many(state), compute.run(state)
    assert family.gaps.shape == (300, 13)
    np.testing.assert_allclose(
        family.gaps[0], seen.losses["adaptive"] - seen.losses["native"], atol=1e-12
    )


@pytest.mark.parametrize(
    "change",
    [{"system": "column"}, {"law": "leaky"}, {"policy": "native"}, {"alpha": 2.0}, {"width": 5}],
)
def test_a_family_that_cannot_be_seen_has_no_networks(change):
    assert len(many.many(replace(SMALL, **change)).gaps) == 0


@pytest.mark.slow
def test_rock_paper_scissors_keeps_its_product_and_circulates():
    orbit = cycle.orbit(BY_NAME["cycle"].state)
    product = orbit.shares.prod(axis=1)
    np.testing.assert_allclose(product, product[0], rtol=1e-7)
    np.testing.assert_allclose(
        np.sort(orbit.rotation.imag), [-1 / np.sqrt(3), 1 / np.sqrt(3)], atol=1e-12
    )
    assert orbit.circulations["this field"] > 0.5
    assert abs(orbit.circulations["a gradient"]) < 1e-12
    assert "is not a gradient" in orbit.verdict


def test_a_seed_draws_what_the_library_would_draw():
    columns, data, order, turns = np.random.default_rng(7).spawn(4)
    net = wh.Network.random((3, 3, 3), seed=columns)
    logits, inputs, _, sequence, senses = system.draws(7, (3, 3, 3))
    np.testing.assert_array_equal(
        wh.Network.random((3, 3, 3), logits=logits).layers[1], net.layers[1]
    )
    np.testing.assert_array_equal(inputs, wh.Task.random(3, 3, seed=data).inputs)
    np.testing.assert_array_equal(sequence, permuted(6, 30, order))
    np.testing.assert_array_equal(senses, fair_turns(180, turns))


@pytest.mark.slow
def test_a_run_that_leaves_the_interior_ends_there():
    state = State(
        system="column", start=(1.0, 1.0, 9000.0), target=(9000.0, 1.0, 1.0), scale=1.0, omega=8.0
    )
    seen = compute.run(state)
    assert seen.moment(180) == seen.made
    assert seen.note == "" or "interior" in seen.note
