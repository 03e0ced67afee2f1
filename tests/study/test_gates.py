"""The verdict is the conjunction of the gates; a gate that failed stays failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.small import small
from whorl.study import gates
from whorl.study.design import Gate


def gate(relation, bound=2.0, statistic="s"):
    return Gate("a gate", statistic, relation, bound, "own")


@pytest.mark.parametrize(
    ("relation", "below", "at", "above"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
        ("==", False, True, False),
    ],
)
def test_a_relation_means_what_it_says(relation, below, at, above):
    seen = [gates.evaluate(gate(relation), {"s": value})["passed"] for value in (1.0, 2.0, 3.0)]
    assert seen == [below, at, above]


@pytest.mark.parametrize(
    ("relation", "value", "margin"),
    [("<", 0.5, 1.5), ("<=", 2.5, -0.5), (">", 5.0, 3.0), (">=", 1.0, -1.0), ("==", 2.0, 0.0)],
)
def test_a_margin_says_how_far_inside_the_bound_a_value_lies(relation, value, margin):
    assert gates.evaluate(gate(relation), {"s": value})["margin"] == margin


@given(st.sampled_from(["<", "<=", ">", ">=", "=="]), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_margin_is_negative_only_where_the_gate_failed(relation, value, bound):
    seen = gates.evaluate(gate(relation, bound), {"s": value})
    assert seen["margin"] >= 0 if seen["passed"] else seen["margin"] <= 0


def test_what_a_gate_saw_is_written_down():
    assert gates.evaluate(gate("<"), {"s": 1.0, "t": 5.0}) == {
        "name": "a gate",
        "statistic": "s",
        "relation": "<",
        "bound": 2.0,
        "origin": "own",
        "value": 1.0,
        "margin": 1.0,
        "passed": True,
    }


def test_a_gate_on_a_statistic_that_the_run_does_not_have_is_not_met():
    for relation in ("<", "<=", ">", ">=", "=="):
        seen = gates.evaluate(gate(relation, statistic="u"), {"s": 1.0, "t": 2.0})
        assert (seen["value"], seen["margin"], seen["passed"]) == (None, None, False)
    assert gates.verdict(small(gates=[("u", "<", 1), ("s", "<", 2)]), {"s": 1.0})[0] == "FAIL"


def test_not_a_number_passes_no_gate():
    for relation in ("<", "<=", ">", ">=", "=="):
        assert not gates.evaluate(gate(relation), {"s": float("nan")})["passed"]


@pytest.mark.parametrize("failing", [(), (0,), (1,), (2,), (0, 1, 2)])
def test_the_verdict_is_the_conjunction_and_failed_gates_stay(failing):
    study = small(gates=[("a", "<", 1), ("b", "<", 1), ("c", "<", 1)])
    verdict, seen = gates.verdict(
        study, {name: 2.0 if number in failing else 0.0 for number, name in enumerate("abc")}
    )
    assert verdict == ("FAIL" if failing else "PASS")
    assert [number for number, one in enumerate(seen) if not one["passed"]] == list(failing)
    assert [one["statistic"] for one in seen] == ["a", "b", "c"]
