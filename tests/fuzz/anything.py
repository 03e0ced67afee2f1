"""Values of any kind.

What may stand where a number or an array is asked for, and what should not.
"""

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

SHAPES = [
    (),
    (0,),
    (1,),
    (2,),
    (3,),
    (0, 3),
    (1, 3),
    (3, 1),
    (2, 3),
    (3, 2),
    (3, 3),
    (4, 3),
    (6, 6),
    (2, 3, 3),
]
KINDS = [
    np.float64,
    np.float64,
    np.float32,
    np.float16,
    np.longdouble,
    np.int64,
    np.uint8,
    np.bool_,
    np.complex128,
    "U3",
    "O",
    "M8[s]",
]
EXTREMES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-300,
    5e-324,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    1e-17,
]
FLOATS = st.one_of(st.floats(0, 1), st.floats(), st.sampled_from(EXTREMES))
WHOLES = st.one_of(
    st.integers(-2, 8), st.integers(), st.sampled_from([2**31, 2**63, 10**400, True])
)
ODD = st.sampled_from(
    [
        None,
        "",
        "three",
        b"1",
        {},
        {1: 2},
        set(),
        (),
        object,
        print,
        np.random.default_rng,
        range(3),
        slice(2),
        ...,
        1j,
    ]
)


@st.composite
def arrays(draw, shapes=tuple(SHAPES)):
    """An array of any type; some of them JAX's."""
    kind = draw(st.sampled_from(KINDS))
    made = np.asarray(draw(hnp.arrays(np.float64, draw(st.sampled_from(shapes)), elements=FLOATS)))
    with np.errstate(all="ignore"):
        made = (
            made.astype(str).astype(kind)
            if kind == "U3"
            else made.astype(object)
            if kind == "O"
            else _cast(made, kind)
        )
    return (
        jnp.asarray(made)
        if made.dtype in (np.float64, np.float32, np.int64, np.bool_, np.complex128)
        and draw(st.booleans())
        else made
    )


def _cast(made, kind):
    small = np.where(np.isfinite(made) & (np.abs(made) < 100), made, 1.0)
    return made.astype(kind) if np.dtype(kind).kind in "fc" else small.astype(np.int64).astype(kind)


SCALARS = st.one_of(
    FLOATS,
    WHOLES,
    ODD,
    st.builds(np.float32, st.floats(0, 1, width=32)),
    st.builds(np.int16, st.integers(0, 9)),
    arrays(((),)),
)
NESTED = st.recursive(
    st.one_of(FLOATS, st.integers(-2, 4), st.none()),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=12,
)
ANYTHING = st.one_of(SCALARS, arrays(), NESTED)


@st.composite
def mostly(draw, good, other=ANYTHING):
    """Good values four times in five, so that what comes behind a refusal is reached too."""
    return draw(other if draw(st.integers(0, 4)) == 4 else good)


@st.composite
def arguments(draw, **named):
    """Some of these arguments, each mostly good."""
    return {name: draw(strategy) for name, strategy in named.items() if draw(st.booleans())}
