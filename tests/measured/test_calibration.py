"""Every cell of the trials, a thousand experiments each, against what the documentation says."""

import pytest

from measured import trials

CELLS = [
    (group, number) for group in trials.WANTED for number in range(len(trials.GROUPS[group][1]))
]


def words(given):
    group, number = given
    return f"{group}: {trials.label(trials.GROUPS[group][1][number])}"


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS, ids=words)
def test_the_share_is_what_the_page_says(cell):
    group, number = cell
    low, high = trials.WANTED[group](trials.GROUPS[group][1][number])
    # Twice the error of a thousand experiments on either side.
    assert low - 0.015 <= trials.simulate(group, number) <= high + 0.015
