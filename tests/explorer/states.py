"""States that every test of the explorer may use, and any state at all."""

import json
from urllib.parse import urlencode

from hypothesis import strategies as st

from whorl.explorer.state import KINDS, Choice, Parts, State, from_query

SMALL = State(depth=2, epochs=2)
WORDS = {
    kind: [word for word, _ in kind.words] for kind in KINDS.values() if isinstance(kind, Choice)
}


def _values(kind):
    if isinstance(kind, Choice):
        return st.sampled_from(WORDS[kind])
    if isinstance(kind, Parts):
        return st.tuples(*[st.floats(0.01, 10.0)] * 3)
    if kind.whole:
        return st.integers(kind.low, kind.high)
    return st.floats(kind.low, kind.high)


@st.composite
def states(draw):
    """Any state."""
    given = {name: draw(_values(kind)) for name, kind in KINDS.items()}
    return State(**given | {"frame": min(given["frame"], 6 * given["epochs"])})


def reopened(text):
    """The state of a downloaded file, which the page's script turns into an address."""
    given = json.loads(text)
    assert given.pop("whorl") == "explorer"
    lists = {key: ",".join(map(str, one)) for key, one in given.items() if isinstance(one, list)}
    return from_query(urlencode(given | lists))
