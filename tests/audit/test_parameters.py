"""The door of a run and the door of its audit, which share no code, let in the same parameters."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import small
from whorl.study import cost, design
from whorl.study import kinds as ours
from whorl_audit import folder, kinds, limits
from whorl_audit.types import UnreadableError
from whorl_studies.foresight import audit as foresight

KINDS = ours.names()
RULES = {kind: ours.get(kind).parameters.declared() for kind in KINDS}
EVERY = [(kind, name) for kind in KINDS for name in RULES[kind]]
# Every end of a range that one of the two knows, the numbers next to it, and what is no number at
# all.
ENDS = sorted(
    {
        float(end)
        for kind in KINDS
        for rule in kinds.find(kind).parameters.values()
        for end in rule.ends
    }
    | {0.001, 0.1, 1 / 3, 5e-324, 1e308, 1e-16}
)
NEAR = [
    near
    for end in ENDS
    for near in (end, math.nextafter(end, -math.inf), math.nextafter(end, math.inf), -end)
]
WHOLE = [
    near
    for end in ENDS
    if end == int(end)
    for near in (int(end) - 1, int(end), int(end) + 1, int(end) + 64)
]
ODD = [
    None,
    True,
    False,
    "1",
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    -(10**400),
    {},
    [],
    [[1]],
    [1, "a"],
    [None],
    [True, 0.5, 0.0],
]
SINGLE = [*NEAR, *WHOLE, *ODD]
LISTS = [
    *([one] for one in SINGLE),
    *([one, 1] for one in SINGLE),
    *([1, one, 0.5] for one in NEAR),
    *([one, 0.5, 0.5 - one] for one in NEAR),
    list(range(1, 1001)),
    list(range(1002)),
    [n / 2000 + 1e-3 for n in range(1000)],
    [n / 2000 + 1e-3 for n in range(1001)],
    [1, 1],
    [1, 1.0],
    [0.0, -0.0],
    [0.2, 0.3, 0.5],
    [0.2, 0.3, 0.5 + 1e-11],
    [0.001, 0.5, 0.499],
    [0.0009, 0.5, 0.4991],
    [1, 0.5, 0],
    [1.0, 1.0, 0.5],
]


def at_the_run(kind, name, value):
    """Whether a design with this value would be let in."""
    try:
        design._DesignReader("mine.toml", {}).value(name, value, RULES[kind][name], name)
    except ValueError:
        return False
    return True


def at_the_audit(kind, name, value):
    return kinds.find(kind).parameters[name].allows(value)


@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[" ".join(one) for one in EVERY])
def test_both_let_in_the_same_values(kind, name):
    verdicts = set()
    many = isinstance(vars(design.shipped(kind).values())[name], list)
    for value in (*SINGLE, *(LISTS if many else LISTS[-20:])):
        verdict = at_the_run(kind, name, value)
        assert at_the_audit(kind, name, value) == verdict, value
        verdicts.add(verdict)
    assert verdicts == {True, False}


numbers = st.one_of(
    st.floats(),
    st.integers(),
    st.integers(-2, 70),
    st.floats(0, 2),
    st.booleans(),
    st.none(),
    st.text(max_size=2),
)


@pytest.mark.slow
@given(st.sampled_from(EVERY), st.one_of(numbers, st.lists(numbers, max_size=4)))
def test_both_let_in_the_same_random_values(parameter, value):
    kind, name = parameter
    assert at_the_run(kind, name, value) == at_the_audit(kind, name, value)


@pytest.mark.parametrize("kind", KINDS)
def test_both_know_the_same_parameters_and_let_in_the_registered_ones(kind):
    assert set(kinds.find(kind).parameters) == set(RULES[kind])
    study = design.shipped(kind)
    for values in (study.values(), study.values(quick=True)):
        assert all(
            at_the_run(kind, name, value) and at_the_audit(kind, name, value)
            for name, value in vars(values).items()
        )


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("structural", "step", 10.0),
        ("structural", "step", 1e3),
        ("structural", "leak", 1e-16),
        ("structural", "alpha", 1e-9),
        ("structural", "omegas", [1e6]),
        ("structural", "rank_tol", 1e-100),
        ("structural", "negative_start", [1e-16, 0.5, 0.5]),
        ("threshold", "rank_tol", 1),
        ("threshold", "concentration", 1e308),
        ("threshold", "finite_step", 1e308),
        ("horizon", "scales", [5e-324]),
        ("horizon", "leak", 1e16),
        ("horizon", "omega", 1e308),
        ("horizon", "chunk", 6_400_000_000),
        ("foresight", "betas", [700, 710]),
        ("structural", "floor", 2.0),
        ("foresight", "wide", 3),
    ],
)
def test_values_on_which_run_and_audit_once_differed_are_refused_by_both(kind, name, value):
    assert not at_the_run(kind, name, value)
    assert not at_the_audit(kind, name, value)


@pytest.mark.parametrize(
    ("step", "leak", "good"),
    [
        (0.5, 0.1, True),
        (math.nextafter(0.5, 1), 0.1, False),
        (1.0, 1e-6, False),
        (4e-6, 1e-6, True),
    ],
)
def test_a_step_of_many_leaks_is_refused_by_both(step, leak, good):
    text = small.text("structural", step=step, leak=leak)
    values = {
        name: entry["value"] for name, entry in design.shipped("structural").parameters.items()
    } | {"step": step, "leak": leak}
    assert (kinds.find("structural").joint(values) is None) == good
    if good:
        design.parse(text.encode())
        return
    with pytest.raises(
        ValueError, match=r"line \d+: step must be at most 5 times leak, .*, but it is "
    ):
        design.parse(text.encode(), "mine.toml")


def test_the_ceilings_of_a_run_and_of_its_audit_are_the_same():
    assert (limits.ROWS, limits.DRAWS, foresight.FORESEEN) == (cost.ROWS, cost.DRAWS, cost.FORESEEN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("quick", [False, True])
def test_both_count_the_same_work(kind, quick):
    study = design.shipped(kind)
    p, found = study.values(quick), cost.estimate(study, quick)
    auditor = kinds.find(kind)
    theirs = auditor.sizes(vars(p))
    assert theirs == {name: ours.get(kind).work(p).rows[name] for name in theirs}
    assert limits.ceiling_fault(auditor, vars(p)) is None
    for _, foreseen, _ in auditor.work(vars(p)):
        assert foreseen == found.foreseen > 0


@pytest.mark.parametrize(
    ("kind", "others", "what"),
    [
        ("structural", {"families": 100_000, "updates": 10_000}, "rows in its tables"),
        ("threshold", {"families": 100_000, "resamples": 1_000_000}, "numbers in its bootstrap"),
        ("horizon", {"epochs": 1_000_000}, "rows in its tables"),
        (
            "foresight",
            {"epochs": 20_000, "trials": 2, "wide_trials": 2, "noises": [0.1], "omegas": [0.5]},
            "foreseen updates|rows",
        ),
    ],
)
def test_a_design_that_asks_for_too_much_is_refused_by_both_before_anything_is_made(
    kind, others, what, tmp_path
):
    given = design.shipped(kind).values(**others)
    with pytest.raises(
        UnreadableError,
        match=f"a study must have at most .* ({what}).* to be audited, but its design asks for ",
    ):
        folder.parameters({"kind": kind, "parameters": vars(given)}, quick=False)
    source = design.shipped(kind).text.decode()
    for name, value in others.items():
        source = source.replace(
            f"\n{name} = {{ value = {design.shipped(kind).parameters[name]['value']}",
            f"\n{name} = {{ value = {value}",
            1,
        )
    study = design.parse(source.encode())
    with pytest.raises(
        ValueError,
        match=f"study {kind} must have at most .* ({what}).*, but its design asks for .*: split it into several",
    ):
        cost.check([(kind, cost.estimate(study))], tmp_path / "new")
    assert not (tmp_path / "new").exists()
