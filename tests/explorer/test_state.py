"""A state goes through an address and a file unharmed, and nothing else comes through."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.states import states
from whorl.explorer.presets import BY_NAME, PRESETS
from whorl.explorer.state import KINDS, State, from_json, from_query


def a_state_or_a_sentence(read, text):
    try:
        return isinstance(read(text), State)
    except ValueError as refusal:
        return " must " in str(refusal)


@given(states())
def test_an_address_names_exactly_one_state(state):
    assert from_query(state.to_query()) == state
    assert from_query("?" + state.to_query()) == state


@given(states())
def test_a_file_holds_exactly_one_state(state):
    assert from_json(state.to_json()) == state


@given(st.text(max_size=80))
def test_any_address_is_a_state_or_a_sentence(text):
    assert a_state_or_a_sentence(from_query, text)


@given(
    st.dictionaries(
        st.sampled_from(sorted(KINDS)),
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())
        ),
    )
)
def test_any_file_is_a_state_or_a_sentence(given_settings):
    assert a_state_or_a_sentence(from_json, json.dumps({"whorl": "explorer", **given_settings}))


def test_the_opening_state_has_an_empty_address():
    assert State().to_query() == ""


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("depth=7", "depth must be a whole number from 1 to 6, but it is 7"),
        ("depth=two", "depth must be a whole number from 1 to 6, but it is 'two'"),
        ("depth=99999999999999999999", "depth must be a whole number from 1 to 6"),
        ("omega=nan", "omega must be a number from 0 to 8, but it is 'nan'"),
        ("omega=1e999", "omega must be a number from 0 to 8"),
        ("epochs=1000", "epochs must be a whole number from 1 to 30, but it is 1000"),
        ("law=__import__('os')", "law must be one of direct, repair, leaky, rotational"),
        ("start=1,2", "start must be three positive numbers"),
        ("start=1,0,1", "start must be three positive numbers"),
        ("colour=red", "settings of the explorer only, but 'colour' is not one"),
        ("depth=2&depth=3", "must hold each setting once, but depth is there twice"),
        (
            "epochs=2&frame=13",
            "frame must be a whole number from 0 to 12, six per epoch, but it is 13",
        ),
        ("x" * 3000, "the address must be at most 2000 characters long, but it has 3000"),
    ],
)
def test_an_address_is_refused_in_one_sentence(query, sentence):
    with pytest.raises(ValueError) as refusal:
        from_query(query)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "must be JSON"),
        ("[]", "must hold a state"),
        ('{"whorl": "explorer", "depth": "3"}', "depth must be"),
    ],
)
def test_a_file_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(ValueError, match=sentence):
        from_json(text)


def test_every_claim_has_its_words():
    words = [word for word, _ in KINDS["claim"].words]
    assert words == list(BY_NAME)
    for preset in PRESETS:
        assert preset.state.claim == preset.name
        assert preset.story.count(". ") + preset.story.count(": ") >= 1
        assert preset.equation.count("<var>") > 2
