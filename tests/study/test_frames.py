"""Tables as columns, and sums that are rounded once."""

import itertools
import math

import numpy as np
import pytest

from whorl.study import frames


def test_a_product_is_every_combination_and_its_last_key_is_fastest():
    keys = {"depth": [1, 2, 4], "policy": ["one", "two"], "flip": range(2)}
    made = frames.product(**keys)
    assert list(zip(*(column.tolist() for column in made.values()), strict=True)) == list(
        itertools.product(*keys.values())
    )
    empty = frames.product(some=[1, 2], none=[], more=[3])
    assert [len(column) for column in empty.values()] == [0, 0, 0]


@pytest.mark.parametrize("spread", [1, 30])
def test_columns_are_summed_with_one_rounding_whatever_their_size(spread):
    weights = np.exp(spread * np.random.default_rng(0).standard_normal((500, 2, 3, 3)))
    weights /= weights.sum(axis=-2, keepdims=True)
    slowly = [
        max(abs(math.fsum(layer[:, column]) - 1) for layer in one for column in range(3))
        for one in weights
    ]
    np.testing.assert_array_equal(frames.column_residual(weights), slowly)
