"""Orders and turns come from a seed or from the user, and are checked either way."""

import numpy as np
import pytest

from whorl.learning import schedule


def test_every_epoch_of_a_permuted_order_shows_every_sample_once():
    order = schedule.permuted(6, 30, 3).reshape(30, 6)
    assert (np.sort(order, axis=1) == np.arange(6)).all()
    assert len({tuple(epoch) for epoch in order}) > 20


def test_a_fixed_order_repeats_itself():
    assert schedule.fixed(3, 2).tolist() == [0, 1, 2, 0, 1, 2]


def test_the_same_seed_draws_the_same_run():
    first, second = (
        schedule.drawn(6, 5, 9, "permuted", None),
        schedule.drawn(6, 5, 9, "permuted", None),
    )
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


def test_turns_are_fair_coins():
    turns = schedule.fair_turns(20_000, 4)
    assert set(np.unique(turns)) == {-1, 1}
    assert abs(turns.mean()) < 4 / np.sqrt(20_000)


@pytest.mark.usefixtures("as_users_call_it")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((6, None, 0, "permuted", None), "epochs must be a whole number"),
        ((6, 0, 0, "permuted", None), "epochs must be a whole number of at least 1, but it is 0"),
        ((6, 2.5, 0, "fixed", None), "epochs must be a whole number of at least 1, but it is 2.5"),
        (
            (6, 2, None, "permuted", None),
            "seed must be a non-negative whole number to draw a permuted schedule, but it is None",
        ),
        (
            (6, 2, None, "fixed", None),
            "seed must be a non-negative whole number to draw a fair turn, but it is None",
        ),
        (
            (6, 2, -1, "permuted", None),
            "seed must be a non-negative whole number or a NumPy Generator, but it is -1",
        ),
        (
            (6, 2, 0, "sorted", None),
            "schedule must be 'permuted', 'fixed' or a row of samples, but it is 'sorted'",
        ),
        ((6, None, 0, [0, 6], None), "schedule must name samples from 0 to 5, but entry 1 is 6"),
        ((6, None, 0, [0.5], None), "schedule must be a row of whole numbers"),
        ((6, None, 0, [], None), "schedule must be a row of whole numbers"),
        (
            (6, None, 0, 3, None),
            r"schedule must be a row of whole numbers, but its shape is \(\) and its type int64",
        ),
        (
            (6, None, 0, [[0, 1]], None),
            (
                r"schedule must be a row of whole numbers, but its shape is \(1, 2\) and its type "
                r"int64"
            ),
        ),
        ((6, 2, 0, [0, 1], None), "epochs must be left out where a schedule is given, but it is 2"),
        (
            (6, None, 0, [0, 1], [1]),
            r"turns must have one entry per update, 2, but the shape is \(1,\)",
        ),
        ((6, None, 0, [0, 1], [1, 0]), r"turns must be \+1 or -1, but entry 1 is 0"),
    ],
)
def test_a_bad_schedule_is_refused_in_one_sentence(given, message):
    with pytest.raises(ValueError, match=message):
        schedule.drawn(*given)
