"""What the table of simulations says, against what the documentation says of it."""

from measured import trials


def test_portions_have_streams_of_their_own_and_can_be_repeated():
    cell = trials.GROUPS["edge"][1][0]
    first, again, second = (trials.simulate("edge", cell, part, 20) for part in (0, 0, 1))
    assert first == again
    assert set(first) == set(second) == {"turns"}
