"""States that every test of the explorer may use, and any state at all."""

import json
from urllib.parse import urlencode

from hypothesis import strategies as st

from whorl.explorer.state import SETTINGS, State, from_query

SMALL = State(depth=2, epochs=2)
WORDS = {
    one: [word for word, _ in one.options] for one in SETTINGS.values() if one.type == "choice"
}


def _values(one):
    if one.type == "choice":
        return st.sampled_from(WORDS[one])
    if one.type == "proportions":
        return st.tuples(*[st.floats(0.01, 10.0)] * 3)
    if one.type == "whole":
        return st.integers(one.low, one.high)
    return st.floats(one.low, one.high)


@st.composite
def states(draw):
    """Any state."""
    given = {name: draw(_values(one)) for name, one in SETTINGS.items()}
    return State(**given | {"frame": min(given["frame"], 6 * given["epochs"])})


def reopened(text):
    """The state of a downloaded file, which the page's script turns into an address."""
    given = json.loads(text)
    assert given.pop("whorl") == "explorer"
    lists = {key: ",".join(map(str, one)) for key, one in given.items() if isinstance(one, list)}
    return from_query(urlencode(given | lists))
