"""A registry takes what fits, and refuses the rest in one sentence."""

import pytest

import whorl as wh
from explorer.states import reopened
from whorl import sweep
from whorl.explorer.state import State, from_query
from whorl.registry import EVERYWHERE, Field, Registry

KNEE = Field("knee", 0.5, 0.1, 2.0, argument="bend", label="Knee")


@pytest.fixture
def shapes():
    """A registry with one entry."""
    made = Registry("shape", "whorl.no_such_group")

    @made.register(parameters=(KNEE,))
    def soft_one(bend, *, law=None):
        """A soft shape,
        in two lines.

        And a story."""
        return bend, law

    return made


@pytest.fixture
def with_law(monkeypatch):
    """A law beside those of the library, for as long as the test."""

    def added(name, *parameters, **fields):
        laws = wh.registry.laws
        monkeypatch.setattr(laws, "_known", dict(laws._known))
        laws.register(name, parameters=parameters, **fields)(lambda **given: wh.leaky(0.1))

    return added


def test_an_entry_says_what_its_factory_says(shapes):
    entry = shapes.get("soft_one")
    assert (entry.label, entry.help, entry.where) == (
        "soft-one",
        "A soft shape, in two lines.",
        EVERYWHERE,
    )


def test_an_entry_is_made_by_the_names_of_its_parameters(shapes):
    entry = shapes.get("soft_one")
    assert entry.make() == (0.5, None)
    assert entry.make(**entry.takes({"knee": 1.5, "depth": 3}), law="mine") == (1.5, "mine")


def test_a_cell_that_is_run_again_registers_again(shapes):
    old = shapes.get("soft_one").factory
    shapes.register("soft_one", label="other", parameters=(KNEE,))(old)
    assert [entry.label for entry in shapes] == ["other"]


def test_a_class_is_registered_under_its_own_name_in_lower_case(shapes):
    @shapes.register()
    class FlatLine:
        """A line."""

    assert shapes.get("flat_line").factory is FlatLine


def test_a_registry_prints_as_a_table(shapes):
    head, row = str(shapes).splitlines()
    assert head.split() == ["name", "parameters", "by", "name", "in", "what", "it", "is"]
    assert (
        row
        == "soft_one  knee = 0.5 (0.1 to 2)  sweep, explorer, estimator  A soft shape, in two lines."
    )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda r: r.get("hard"), "shape must be one of soft_one, but it is 'hard': is the pac"),
        (lambda r: r.get(3), "shape must be one of soft_one, but it is 3"),
        (lambda r: r.get("soft_one", where="moon"), "shape must be one of , but it is 'soft_one'"),
        (
            lambda r: r.register("soft_one")(abs),
            "shape 'soft_one' must have a name of its own, but",
        ),
        (lambda r: r.register("x")(3), "the factory of shape 'x' must be callable, but it is 3"),
        (lambda r: r.register("X y")(abs), "the name of a shape must be lower-case letters,"),
        (
            lambda r: r.register("x", parameters=(KNEE,))(lambda knee: 1),
            "parameters of x must be arguments of its factory, but 'bend' is not",
        ),
        (
            lambda r: r.get("soft_one").make(heel=1),
            "parameters of soft_one must be knee, but 'heel' was given",
        ),
        (
            lambda r: Field("knee", 3.0, 0.1, 2.0),
            "the default of knee must be a number from 0.1 to 2, but it is 3.0",
        ),
        (
            lambda r: r.register("x", parameters=(Field("a b", 1, 0, 2),))(abs),
            "the name of a parameter must be lower-case letters,",
        ),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_bad_input_is_refused_in_one_sentence(shapes, call, sentence):
    with pytest.raises(ValueError) as refusal:
        call(shapes)
    assert str(refusal.value).startswith(sentence)
    assert "\n" not in str(refusal.value)


def design(lines):
    head = 'name = "a"\ntitle = "a"\ndesign = "grid"\nseed = 1\n'
    return sweep.parse((head + lines).encode())


def test_a_design_has_the_parameters_of_the_laws_it_names(with_law):
    with_law("soft", KNEE)
    assert {"leak", "knee"} & design("").values.keys() == {"leak"}
    assert {"leak", "knee"} & design('law.law = "soft"').values.keys() == {"knee"}
    both = design('law.law = ["leaky", "soft"]\nlaw.knee = [0.5, 1]')
    assert both.values["knee"] == (0.5, 1.0)
    assert both.free == ("concentration", "imbalance", "floor", "leak", "knee", "scale", "omega")
    with pytest.raises(ValueError, match=r"line 7: knee must be a number from 0\.1 to 2, but"):
        design('[law]\nlaw = "soft"\nknee = 3')
    with pytest.raises(ValueError, match="law may hold law, alpha, leak, but it holds 'knee'"):
        design("law.knee = 1")


def test_a_number_that_is_compiled_by_itself_decides_the_shape(with_law):
    with_law("soft", Field("knee", 0.5, 0.1, 2.0, per_pair=False))
    made = design('law.law = "soft"\nlaw.knee = [0.5, 1]')
    assert [shape["knee"] for shape in made.shapes] == [0.5, 1.0]
    assert "knee" not in made.free


@pytest.mark.parametrize("name", ["depth", "gap", "scale"])
def test_a_parameter_that_a_sweep_has_already_is_refused(with_law, name):
    with_law("odd", Field(name, 0.5, 0.1, 2.0))
    with pytest.raises(ValueError, match=f"must have names of their own in a sweep, but '{name}'"):
        design('law.law = "odd"')


@pytest.mark.parametrize("law", ["repair", "rotational", "nowhere", 3])
def test_a_law_that_cannot_be_swept_is_refused_with_those_that_can(law):
    with pytest.raises(ValueError, match="law must be one of direct, leaky, but it is"):
        design(f"law.law = {law!r}")


def test_a_policy_that_looks_ahead_has_no_place_in_a_design_or_an_address():
    rule = "policy must be one of native, step_matched, adaptive, but it is 'rollout'$"
    with pytest.raises(ValueError, match=rule):
        design('policy.policy = "rollout"')
    with pytest.raises(ValueError, match=rule):
        from_query("policy=rollout")


def test_a_parameter_of_another_package_goes_through_an_address_and_a_file(with_law):
    with_law("soft", KNEE)
    state = from_query("law=soft&knee=1.5")
    assert state.settings["knee"] == 1.5
    assert from_query(state.to_query()) == reopened(state.to_json()) == state
    assert from_query("law=soft&knee=0.5") == State(law="soft")
    for query, sentence in (
        ("law=soft&knee=9", "knee must be a number from 0.1 to 2, but it is 9.0"),
        ("law=soft&knee=1&knee=1", "must hold each setting once, but knee is there twice"),
        ("law=soft&heel=1", "settings of the explorer only, but 'heel' is not one"),
    ):
        with pytest.raises(ValueError, match=sentence):
            from_query(query)
    with pytest.raises(ValueError, match="more must hold settings of the explorer only"):
        State(more=(("depth", 2),))
