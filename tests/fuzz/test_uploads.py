"""Files that a visitor of the explorer opens.

Figures, a state, or one sentence; never a stumble of the server.
"""

import io
import json

import pytest
from hypothesis import strategies as st

from explorer.states import states
from fuzz import tables
from fuzz.doors import sentence
from whorl.explorer.server import application
from whorl.explorer.state import State
from whorl.explorer.views.table import KEYS, TIMES
from whorl.learning.ledger import TERMS

WORDS = st.sampled_from(
    [
        *TERMS,
        *TIMES,
        *KEYS,
        "ratio",
        "coefficient",
        "real",
        "imag",
        "residual_1",
        "velocity_1",
        "native",
        "loss",
        "gap",
    ]
)
VALUES = st.one_of(st.floats(), st.floats(-1, 1), st.integers(-3, 3), st.none())


@st.composite
def columns(draw):
    """A few short columns with names that the page knows."""
    rows = draw(st.integers(0, 6))
    names = draw(st.lists(st.one_of(WORDS, WORDS, st.text(max_size=3)), unique=True, max_size=7))
    names = [*names, *TERMS] if draw(st.integers(0, 4)) == 0 else names
    return {name: draw(st.lists(VALUES, min_size=rows, max_size=rows)) for name in names}


def empty_where_none(values):
    return ["" if value is None else value for value in values]


@st.composite
def uploads(draw):
    name = draw(
        st.sampled_from(
            ["mine.csv", "mine.parquet", "mine.CSV", "state.json", "mine.txt", "", "../up.csv"]
        )
    )
    kind = draw(st.integers(0, 3))
    if kind == 0:
        content = draw(
            st.one_of(
                st.binary(max_size=80),
                tables.csvs(),
                tables.parquets(),
                states().map(State.to_json).map(str.encode),
            )
        )
    elif name.endswith("parquet"):
        made = {
            key: [None if value is None else float(value) for value in values]
            for key, values in draw(columns()).items()
        }
        content = tables.parquet(made)
    else:
        made = {key: empty_where_none(values) for key, values in draw(columns()).items()}
        content = (
            draw(tables.written(tables.csv(made).encode(errors="replace")))
            if kind == 1
            else tables.csv(made).encode(errors="replace")
        )
    return name, content


@pytest.mark.filterwarnings("ignore")  # a user's server prints them at most
def test_any_upload_is_drawn_or_refused(fuzz):
    client = application().test_client()

    def sent(given):
        name, content = given
        answer = client.post("/upload/light", data={"file": (io.BytesIO(content), name)})
        assert answer.status_code in (200, 400), answer.text
        told = json.loads(answer.text)
        if answer.status_code == 400:
            sentence(told["error"])
            return False
        assert set(told) in ({"figures", "title", "verdicts"}, {"address"})
        return True

    fuzz(uploads(), sent)
