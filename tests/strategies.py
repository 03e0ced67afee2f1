"""Random networks for property tests.

Any widths, depths, supports and rates, and weights down to 1e-12.

Shapes come from a fixed pool in the quick suite, because every new shape costs a compilation; with
`WHORL_EXAMPLES=thorough` they are free. Weights, supports, rates and data are always free.
"""

import os
import random

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import whorl as wh

POOL = [
    (1, 3),
    (3, 3),
    (2, 2),
    (8, 3),
    (3, 8),
    (3, 3, 3),
    (2, 1, 3),
    (5, 4, 3),
    (3, 3, 3, 3),
    (1, 2, 2, 4),
    (2, 3, 4, 3, 2, 3, 4),
]


def widths(least_outputs=2):
    if os.environ.get("WHORL_EXAMPLES", "quick") == "quick":
        return st.sampled_from([pool for pool in POOL if pool[-1] >= least_outputs])
    inner = st.lists(st.integers(1, 8), min_size=1, max_size=6)
    return st.builds(lambda start, out: (*start, out), inner, st.integers(least_outputs, 8))


@st.composite
def columns(draw, shape, sparse):
    """A layer whose weights span up to twelve orders of magnitude, with some entries off its
    support.
    """
    exponents = draw(hnp.arrays(np.float64, shape, elements=st.floats(-12, 0)))
    weights = 10.0**exponents
    if sparse:
        keep = draw(hnp.arrays(np.bool_, shape))
        keep[draw(st.integers(0, shape[0] - 1)), :] = True
        weights = np.where(keep, weights, 0.0)
    return weights / weights.sum(axis=0)


@st.composite
def networks(draw, sparse=True, least_outputs=2):
    sizes = draw(widths(least_outputs))
    shapes = list(zip(sizes[1:], sizes[:-1], strict=True))
    layers = [draw(columns(shape, sparse)) for shape in shapes]
    rates = [
        draw(hnp.arrays(np.float64, shape[1], elements=st.floats(0.1, 10))) for shape in shapes
    ]
    # The run-time type checker looks at a random item of each list; Hypothesis insists that its own
    # random numbers stay untouched.
    state = random.getstate()
    net = wh.Network(layers, rates=rates, support=[layer > 0 for layer in layers])
    random.setstate(state)
    return net


@st.composite
def compositions(draw, samples, width):
    rows = draw(hnp.arrays(np.float64, (samples, width), elements=st.floats(1e-3, 1)))
    return rows / rows.sum(axis=1, keepdims=True)


@st.composite
def problems(draw, samples=3, sparse=True, least_outputs=2):
    """A network with inputs and targets that fit it."""
    net = draw(networks(sparse, least_outputs))
    return (
        net,
        draw(compositions(samples, net.layers[0].shape[1])),
        draw(compositions(samples, net.layers[-1].shape[0])),
    )
