"""Networks, tasks, laws, policies and data.

Made, or refused in one sentence, whatever they are made from.
"""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import whorl as wh
from fuzz.anything import ANYTHING, FLOATS, SCALARS, WHOLES, arguments, arrays, mostly
from fuzz.doors import ends_well

NET = wh.Network.random((3, 2, 3), seed=1)
TASK = wh.Task.random(3, 3, seed=2)
RESPONSE = wh.response(NET, TASK.inputs)
LAWS = [
    wh.direct(),
    wh.repair(),
    wh.leaky(0.1),
    wh.spectral(lambda x: x),
    wh.rotational(),
    wh.rotational(base=wh.leaky(1.0)),
]
SHARE, WIDTH = st.floats(1e-3, 1), st.integers(1, 4)


@st.composite
def layers(draw):
    """Layers that fit each other, mostly."""
    sizes = draw(st.lists(WIDTH, min_size=2, max_size=4))
    made = [
        draw(hnp.arrays(np.float64, shape, elements=SHARE))
        for shape in zip(sizes[1:], sizes, strict=False)
    ]
    made = [layer / layer.sum(axis=0) for layer in made]
    if draw(st.booleans()):
        made[draw(st.integers(0, len(made) - 1))] = draw(arrays())
    return made


SUPPORT = mostly(st.none(), st.one_of(ANYTHING, st.lists(arrays(), max_size=3)))
RATES = mostly(SHARE, st.one_of(ANYTHING, st.lists(ANYTHING, max_size=3)))
LAYERS = mostly(layers(), st.one_of(ANYTHING, st.lists(ANYTHING, max_size=3)))
# What would take more memory than there is fails when it is drawn, as everywhere in Python: a width
# is at most a few here.
NARROW = st.one_of(
    st.integers(-2, 5), st.sampled_from([True, None, "3", 2.0, np.int64(2), np.float64(2), 10**400])
)
WIDTHS = mostly(
    st.lists(WIDTH, min_size=2, max_size=4), st.one_of(SCALARS, st.lists(NARROW, max_size=4))
)
SEEDS = mostly(st.integers(0, 10**12), SCALARS)
TYPES = mostly(
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from(
        [np.float16, int, bool, complex, "x", None, str, object, "M8[s]", np.longdouble]
    ),
)


def test_any_layers_are_a_network_or_a_sentence(fuzz):
    drawn = st.tuples(LAYERS, arguments(rates=RATES, support=SUPPORT))
    fuzz(drawn, lambda given: ends_well(wh.Network, given[0], **given[1]))


def test_any_request_for_a_random_network_is_one_or_a_sentence(fuzz):
    logits = st.one_of(st.none(), ANYTHING, st.lists(arrays(), max_size=3))
    numbers = mostly(st.floats(0, 1), SCALARS)
    named = arguments(
        imbalance=numbers, floor=numbers, logits=logits, rates=RATES, support=SUPPORT, dtype=TYPES
    )
    fuzz(
        st.tuples(WIDTHS, SEEDS, named),
        lambda given: ends_well(wh.Network.random, given[0], seed=given[1], **given[2]),
    )


def test_any_request_for_a_task_is_one_or_a_sentence(fuzz):
    few = mostly(WIDTH, NARROW)
    named = arguments(
        mixtures=mostly(st.integers(0, 4), NARROW), concentration=mostly(st.floats(0.1, 9), SCALARS)
    )
    fuzz(
        st.tuples(few, few, SEEDS, named),
        lambda given: ends_well(wh.Task.random, given[0], given[1], seed=given[2], **given[3]),
    )


def test_any_law_is_made_or_refused(fuzz):
    base = mostly(st.sampled_from(LAWS[:4]), st.one_of(ANYTHING, st.sampled_from(LAWS)))
    skew = mostly(st.none(), st.one_of(ANYTHING, st.just(wh.quarter_turn(3))))
    number = mostly(st.floats(0.01, 0.9), SCALARS)
    makers = {
        "repair": (wh.repair, arguments(tol=number)),
        "leaky": (wh.leaky, st.fixed_dictionaries({"mu": number})),
        "spectral": (wh.spectral, st.fixed_dictionaries({"r": ANYTHING})),
        "rotational": (wh.rotational, arguments(alpha=number, omega=number, base=base, skew=skew)),
        "krylov": (
            wh.krylov,
            st.fixed_dictionaries(
                {"law": base}, optional={"tol": number, "most": mostly(st.integers(1, 9), SCALARS)}
            ),
        ),
        "quarter_turn": (wh.quarter_turn, st.fixed_dictionaries({"outputs": NARROW})),
        "sample_turn": (
            wh.sample_turn,
            st.fixed_dictionaries({"samples": NARROW, "outputs": NARROW}),
        ),
    }
    drawn = st.sampled_from(sorted(makers)).flatmap(
        lambda name: st.tuples(st.just(name), makers[name][1])
    )
    fuzz(drawn, lambda given: ends_well(makers[given[0]][0], **given[1]))


def test_any_policy_is_made_or_refused(fuzz):
    number = mostly(st.floats(0.01, 0.9), SCALARS)
    gate = mostly(st.sampled_from(["curvature", "always", "never"]), ANYTHING)
    law = mostly(st.none(), st.one_of(ANYTHING, st.sampled_from(LAWS)))
    common = {"omega": number, "law": law}
    far = mostly(st.one_of(st.none(), st.integers(0, 50)), SCALARS)
    actions = mostly(
        st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=3), ANYTHING
    )
    makers = {
        "native": (wh.native, arguments(law=law)),
        "step_matched": (wh.step_matched, arguments(gate=gate, **common)),
        "adaptive": (wh.adaptive, arguments(gate=gate, **common)),
        "rollout": (
            wh.rollout,
            arguments(actions=actions, **common),
        ),
        "costate": (
            wh.costate,
            arguments(order=mostly(st.sampled_from([1, 2]), SCALARS), **common),
        ),
    }
    drawn = st.sampled_from(sorted(makers)).flatmap(
        lambda name: st.tuples(st.just(name), number, far, makers[name][1])
    )

    def made(given):
        name, scale, horizon, named = given
        return ends_well(
            makers[name][0],
            scale,
            **named | ({"horizon": horizon} if name in ("rollout", "costate") else {}),
        )

    fuzz(drawn, made)


@st.composite
def rows(draw):
    """Compositions of three parts, mostly."""
    made = draw(
        hnp.arrays(np.float64, (1 if draw(st.integers(0, 9)) == 0 else 6, 3), elements=SHARE)
    )
    made = made / made.sum(axis=1, keepdims=True)
    if draw(st.integers(0, 3)) == 0:
        made[draw(st.integers(0, len(made) - 1)), draw(st.integers(0, 2))] = draw(FLOATS)
    return made


def centred(made):
    with np.errstate(all="ignore"):
        return made - made.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("ask", [wh.residual, wh.loss], ids=lambda ask: ask.__name__)
def test_any_data_are_answered_or_refused(fuzz, ask):
    net = mostly(st.just(NET))
    data = mostly(rows(), ANYTHING)
    fuzz(st.tuples(net, data, data), lambda given: ends_well(ask, *given))


def test_any_question_to_a_response_is_answered_or_refused(fuzz):
    selected = mostly(st.one_of(st.none(), st.integers(0, 5)), st.one_of(SCALARS, WHOLES))
    residual = mostly(rows().map(centred), ANYTHING)

    def asked(given):
        data, which, law, field = given
        return ends_well(lambda: law(wh.response(NET, data, selected=which), field))

    fuzz(st.tuples(mostly(rows(), ANYTHING), selected, st.sampled_from(LAWS), residual), asked)
