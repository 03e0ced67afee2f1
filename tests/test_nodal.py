"""Factors of nodal equations: every digit against exact arithmetic, fast and accurate alike."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from whorl.systems import _nodal

EPS = np.finfo(float).eps


def drawn(seed, nodes, decades):
    """A random circuit whose conductances span some decades, its first and last node held."""
    draws = np.random.default_rng(seed)
    ends = [(node, int(draws.integers(node))) for node in range(1, nodes)]
    ends += [pair for pair in draws.integers(nodes, size=(nodes, 2)).tolist() if pair[0] != pair[1]]
    sizes = 10.0 ** -draws.uniform(0, decades, len(ends))
    places = np.concatenate([[nodes - 2], np.arange(nodes - 2), [nodes - 2]])
    first, second = places[np.array(ends)].T
    return _nodal.Circuit(jnp.asarray(first), jnp.asarray(second), jnp.asarray(sizes), nodes - 2)


def exactly(circuit, right):
    """Solutions with sixty digits."""
    with mpmath.workdps(60):
        size = circuit.free
        matrix = mpmath.zeros(size + 1)
        for one, other, g in zip(*map(np.asarray, circuit[:3]), strict=True):
            for here, there in ((one, other), (other, one)):
                matrix[int(here), int(here)] += mpmath.mpf(float(g))
                matrix[int(here), int(there)] -= mpmath.mpf(float(g))
        inner = matrix[:size, :size]
        return [mpmath.lu_solve(inner, mpmath.matrix(column.tolist())) for column in right.T]


def furthest(found, exact):
    """The largest relative error, in units of the last place."""
    errors = [
        abs(mpmath.mpf(float(found[i, k])) / one[i] - 1)
        for k, one in enumerate(exact)
        for i in range(len(found))
        if one[i] != 0
    ]
    return float(max(errors)) / EPS


@pytest.mark.parametrize("decades", [0, 6, 12, 15])
@pytest.mark.parametrize("nodes", [9, 42])
def test_a_solution_keeps_its_last_digits_at_any_ratio_of_conductances(nodes, decades):
    circuit = drawn(decades, nodes, decades)
    right = np.zeros((circuit.free, 2))
    right[0, 0] = right[circuit.free // 2, 1] = 1.0
    found = jax.jit(lambda g, right: _nodal.solver(circuit._replace(conductances=g))(right))
    seen = np.asarray(found(circuit.conductances, right))
    # A few roundings of each number: 3.0 was the most in 300 circuits of 7 to 22 free nodes.
    assert furthest(seen, exactly(circuit, right)) < 4


def test_a_plain_factor_would_not():
    circuit = drawn(15, 42, 15)
    right = np.eye(circuit.free)[:, :1]
    joined = np.asarray(circuit.joined(circuit.free))
    lower = np.linalg.cholesky(np.diag(np.asarray(circuit.leaving())) - joined)
    seen = np.linalg.solve(lower.T, np.linalg.solve(lower, right))
    assert furthest(seen, exactly(circuit, right)) > 1e3


@pytest.mark.parametrize("size", [1, 31, 32, 33, 70])
def test_an_elimination_in_blocks_is_the_one_by_one(size):
    draws = np.random.default_rng(size)
    among = np.where(draws.uniform(size=(size, size)) < 0.2, draws.uniform(size=(size, size)), 0.0)
    np.fill_diagonal(among, 0.0)
    leaving = draws.uniform(size=size) * 1e-9
    lower, upper = map(
        np.asarray, _nodal.without_subtraction(jnp.asarray(among), jnp.asarray(leaving))
    )
    rest, out = among.copy(), leaving.copy()
    for k in range(size):
        pivot = out[k] + rest[k + 1 :, k].sum()
        np.testing.assert_allclose(upper[k, k], pivot, rtol=1e-13)
        np.testing.assert_allclose(-upper[k, k + 1 :], rest[k, k + 1 :], rtol=1e-13)
        np.testing.assert_allclose(-lower[k + 1 :, k], rest[k + 1 :, k] / pivot, rtol=1e-13)
        rest[k + 1 :, k + 1 :] += np.outer(rest[k + 1 :, k] / pivot, rest[k, k + 1 :])
        out[k + 1 :] += out[k] / pivot * rest[k, k + 1 :]
    assert (np.triu(lower, 1) == 0).all()
    assert (np.tril(upper, -1) == 0).all()


def test_a_stack_is_solved_as_each_alone_also_where_one_needs_the_accurate_factor():
    circuits = [drawn(seed, 20, decades) for seed, decades in ((0, 0), (1, 15))]
    right = jnp.eye(18)[:, :2]

    def solved(first, second, sizes):
        return _nodal.solver(_nodal.Circuit(first, second, sizes, 18))(right)

    edges = min(len(one.first) for one in circuits)
    parts = [tuple(part[:edges] for part in one[:3]) for one in circuits]
    together = jax.vmap(solved)(*(jnp.stack(part) for part in zip(*parts, strict=True)))
    for found, part in zip(together, parts, strict=True):
        np.testing.assert_allclose(found, solved(*part), rtol=1e-14)
