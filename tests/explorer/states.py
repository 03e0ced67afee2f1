"""States that every test of the explorer may use, and any state at all."""

from hypothesis import strategies as st

from whorl.explorer.state import KINDS, Choice, Parts, State, Whole

SMALL = State(depth=2, epochs=2)
WORDS = {
    kind: [word for word, _ in kind.words] for kind in KINDS.values() if isinstance(kind, Choice)
}


def _values(kind):
    if isinstance(kind, Choice):
        return st.sampled_from(WORDS[kind])
    if isinstance(kind, Whole):
        return st.integers(kind.low, kind.high)
    if isinstance(kind, Parts):
        return st.tuples(*[st.floats(0.01, 10.0)] * 3)
    return st.floats(kind.low, kind.high)


@st.composite
def states(draw):
    """Any state."""
    given = {name: draw(_values(kind)) for name, kind in KINDS.items()}
    return State(**given | {"frame": min(given["frame"], 6 * given["epochs"])})
