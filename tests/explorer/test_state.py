"""A state goes through an address and a file unharmed, and nothing else comes through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from explorer.states import reopened, states
from whorl.explorer import page, wires
from whorl.explorer.state import SETTINGS, State, from_query
from whorl.registry import Field, rules


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
    assert reopened(state.to_json()) == state


@given(st.text(max_size=80))
def test_any_address_is_a_state_or_a_sentence(text):
    assert a_state_or_a_sentence(from_query, text)


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


def test_a_link_from_before_still_shows_its_run():
    assert from_query("claim=helps&system=column") == State(system="column")


def test_what_can_be_chosen_is_what_the_registry_has(monkeypatch):
    monkeypatch.setattr(rules, "_known", dict(rules._known))
    knee = Field("knee", 0.5, 0.1, 2.0, argument="bend", label="Knee", help="how soft")
    about = {"label": "a rule of mine", "help": "A rule in a sentence."}
    rules.register("mine", parameters=(knee,), where=("explorer",), **about)(
        lambda bend: rules.get("coupled_learning").make()
    )
    assert ("mine", "a rule of mine") in SETTINGS["rule"].options
    state = from_query("system=circuit&rule=mine&knee=1.5")
    assert state.settings["knee"] == 1.5
    shown = page.html(state.to_query())
    assert 'title="how soft"' in shown
    assert '<option value="mine" data-uses="knee" title="A rule in a sentence." selected>' in shown
    with pytest.raises(ValueError, match=r"knee must be a number from 0\.1 to 2, but it is 9"):
        from_query("knee=9")


def test_every_rule_of_a_circuit_can_be_shown():
    for entry in rules.entries(where="explorer"):
        assert len(wires.wires(State(system="circuit", rule=entry.name)).verdict) > 20
