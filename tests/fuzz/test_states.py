"""Addresses of the explorer: a state, or one sentence; and the server never stumbles over them."""

import json

from hypothesis import strategies as st

from explorer.states import reopened, states
from fuzz.doors import ends_well, sentence
from whorl.explorer.server import application
from whorl.explorer.state import SETTINGS, State, from_query

NAMES = st.one_of(
    st.sampled_from(sorted(SETTINGS)),
    st.sampled_from(sorted(SETTINGS)),
    st.sampled_from(["", "colour", "seed%20", "depth[]"]),
)
VALUES = st.one_of(
    st.integers(-2, 12).map(str),
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(
        [
            "rotational",
            "native",
            "plus",
            "1,2,3",
            "1,1",
            "1e999",
            "0x10",
            "٣",
            "1_000",
            " 1",
            "%",
            "%00",
            "+",
            "",
            "true",
        ]
    ),
    st.text(max_size=8),
)
QUERIES = st.one_of(
    st.text(max_size=80),
    st.lists(st.tuples(NAMES, VALUES), max_size=4).map(
        lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
    ),
    states().map(State.to_query),
    st.tuples(states().map(State.to_query), NAMES, VALUES).map(
        lambda given: f"{given[0]}&{given[1]}={given[2]}"
    ),
)


def test_any_address_is_a_state_or_a_sentence(fuzz):
    fuzz(QUERIES, lambda query: ends_well(from_query, query))


def test_the_server_answers_any_address(fuzz):
    client = application().test_client()

    def asked(query):
        page, told, script = (
            client.get(place, query_string=query) for place in ("/", "/state.json", "/state.py")
        )
        assert page.status_code == 200
        assert told.status_code == script.status_code
        if told.status_code == 200:
            compile(script.text, "state.py", "exec")
            return reopened(told.text).to_query() == from_query(query).to_query()
        assert told.status_code == 400
        sentence(json.loads(told.text)["error"])
        return False

    fuzz(QUERIES.map(lambda query: query.encode("utf-8", "replace").decode()), asked)
