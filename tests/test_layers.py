"""The kernel of any widths: pairs end where each of them ends alone, and no digits are lost."""

from fractions import Fraction
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from test_ensemble import alone, assert_same, many, pairs_of
from whorl.fast import fused, kept, layers, modes, programs
from whorl.learning import dispatch

HOLES = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 0]], dtype=bool)


def through(base, **options):
    return wh.adaptive(0.2, law=wh.rotational(base=base, **options))


def root(eigenvalues):
    return 1 / (0.1 + jnp.sqrt(eigenvalues))


def by_largest(eigenvalues):
    return jnp.max(eigenvalues) / (0.3 + eigenvalues)


def in_order(eigenvalues):
    # Far apart, the weights of two near modes would turn the round-off of K into a difference.
    return jnp.linspace(1.0, 1.1, eigenvalues.shape[0]) + 0 * eigenvalues


CASES = {
    "unequal widths": ((4, 7, 5, 3), wh.adaptive(0.2)),
    "always": ((4, 4, 4), wh.adaptive(0.3, omega=0.5, gate="always")),
    "step-matched": ((4, 5), wh.step_matched(0.2)),
    "never": ((4, 5), wh.step_matched(0.2, gate="never")),
    "two outputs": ((3, 4, 2), wh.native(0.2)),
    "one input": ((1, 4), wh.adaptive(0.2)),
    "large steps": ((4, 4), wh.adaptive(2.0)),
    "alpha": ((3, 3, 3), through(wh.leaky(0.1), alpha=0.5)),
    "skew": ((4, 4), through(wh.leaky(0.1), skew=0.5 * wh.quarter_turn(4))),
    "direct": ((5, 5), through(wh.direct())),
    "repair": ((4, 4, 4), through(wh.repair())),
    "root": ((5, 5, 5), through(wh.spectral(root))),
    "largest": ((4, 4), through(wh.spectral(by_largest))),
    "order": ((5, 5), through(wh.spectral(in_order))),
    "rollout": ((4, 4, 4), wh.rollout(0.2, horizon=3)),
    "wide": ((16, 16, 16), through(wh.spectral(by_largest))),
}


def assert_follows(nets, data, policy):
    assert dispatch.lane_kind(nets, policy) is None
    assert dispatch.layer_kind(nets, policy) is not None
    result = many(nets, data, policy, record=True)
    assert_same(result, 1, alone(nets, data, policy, 1))
    assert np.max(result.closure) <= 1e-14


def test_the_kernel_follows_the_loop_over_one_pair():
    assert_follows(*pairs_of(2, (4, 4)), wh.adaptive(0.2))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_every_policy_gate_and_law_follows_the_loop_over_one_pair(name):
    widths, policy = CASES[name]
    nets, data = pairs_of(2, widths, epochs=2)
    assert_follows(nets, data, policy)


@pytest.fixture
def as_on_a_device(monkeypatch):
    """The programs that a device gets, which a CPU can run too."""
    for module in (fused, kept, layers, modes):
        monkeypatch.setattr(module, "on_cpu", lambda: False)
    programs.layer_program.cache_clear()
    yield
    programs.layer_program.cache_clear()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("as_on_a_device")
def test_the_program_of_a_device_follows_the_loop_over_one_pair(name):
    widths, policy = CASES[name]
    assert_follows(*pairs_of(2, widths, epochs=2), policy)


@pytest.mark.slow
@pytest.mark.usefixtures("as_on_a_device")
def test_a_device_leaves_no_trace_of_the_pairs_that_fill_its_last_block():
    nets, data = pairs_of(programs.WARP + 3, (4, 5, 3), epochs=2)
    result = many(nets, data, wh.adaptive(0.2), record=True)
    for number in (0, programs.WARP - 1, programs.WARP, programs.WARP + 2):
        assert_same(result, number, alone(nets, data, wh.adaptive(0.2), number))


@pytest.mark.slow
@pytest.mark.parametrize("given", ["rates", "support", "both"])
def test_rates_and_supports_follow_the_loop_over_one_pair(given):
    _, data = pairs_of(2, (4, 4, 4), epochs=2)
    more = {} if given == "support" else {"rates": [0.5, [1.0, 2.0, 0.3, 1.0]]}
    more |= {} if given == "rates" else {"support": [HOLES, HOLES]}
    nets = wh.stack([wh.Network.random((4, 4, 4), seed=seed, **more) for seed in (1, 2)])
    assert_follows(nets, data, wh.adaptive(0.2))


@pytest.mark.slow
def test_numbers_of_single_precision_stay_single():
    rng = np.random.default_rng(0)
    nets = wh.stack([wh.Network.random((4, 4), seed=rng, dtype=np.float32) for _ in range(2)])
    _, data = pairs_of(2, (4, 4), epochs=2)
    single = data | {name: data[name].astype(np.float32) for name in ("inputs", "targets")}
    result = many(nets, single, wh.adaptive(0.2))
    assert result.nonreciprocal.dtype == np.float32
    pair = alone(nets, single, wh.adaptive(0.2), 1)
    np.testing.assert_allclose(
        result.nonreciprocal.layers[0][1], pair.nonreciprocal.layers[0], rtol=2e-5
    )


def test_a_skew_matrix_of_ones_own_is_checked_and_needs_no_general_loop():
    nets, _ = pairs_of(2, (4, 4))
    skew = wh.quarter_turn(4)
    fits = wh.adaptive(0.2, law=wh.rotational(base=wh.leaky(0.1), skew=2 * skew))
    kind = dispatch.layer_kind(nets, fits)
    assert kind is not None
    assert kind.skew is None  # it comes with the law
    with pytest.raises(ValueError, match="skew must be square of size 4 or 4, but its shape is"):
        dispatch.layer_kind(nets, wh.adaptive(0.2, law=wh.rotational(skew=wh.quarter_turn(3))))


@pytest.mark.parametrize(
    "policy",
    [
        wh.adaptive(0.2, gate=lambda view: view.number > 3),
        wh.costate(0.2, horizon=2),
    ],
)
def test_what_only_its_author_knows_goes_through_the_general_loop(policy):
    assert dispatch.layer_kind(pairs_of(1, (4, 4))[0], policy) is None


@pytest.mark.slow
def test_neither_workers_nor_neighbours_change_a_bit():
    nets, data = pairs_of(150, (4, 4), epochs=1)
    policy = through(wh.spectral(root))
    one, two = (many(nets, data, policy, workers=workers) for workers in (1, 2))
    for ours, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    some = slice(147, 150)
    part = many(
        jax.tree.map(lambda leaf: leaf[some], nets),
        {name: array[some] for name, array in data.items()},
        policy,
    )
    np.testing.assert_array_equal(one.gap[some], part.gap)


@pytest.mark.slow
def test_a_pair_that_stops_does_not_disturb_the_others():
    nets, data = pairs_of(3, (4, 4))
    column = np.full((4, 4), 0.25)
    column[:, 0] = [2.3e-308, 2.3e-308, 2.3e-308, 1.0]
    blocks = np.array(nets.layers[0])
    blocks[2] = column
    nets = nets.with_blocks([jnp.asarray(blocks)])
    data["inputs"][2], data["targets"][2] = [0.7, 0.1, 0.1, 0.1], [0.0, 0.0, 0.0, 1.0]
    policy = wh.adaptive(1.0, gate="always")
    result = many(nets, data, policy, record=True)
    assert result.completed.tolist() == [True, True, False]
    assert result.made[2] == alone(nets, data, policy, 2).made < result.scheduled
    assert_same(result, 0, alone(nets, data, policy, 0))


def exact_response(blocks, rates, x):
    """K of one sample in rational arithmetic, by the sum over pairs of entries."""
    blocks = [[[Fraction(float(v)) for v in row] for row in block] for block in blocks]
    size = len(blocks[-1])
    onward = [[[Fraction(int(i == j)) for j in range(size)] for i in range(size)]]
    for block in blocks[:0:-1]:
        top = onward[0]
        inner = range(len(block))
        onward.insert(
            0,
            [
                [sum(row[k] * block[k][j] for k in inner) for j in range(len(block[0]))]
                for row in top
            ],
        )
    flow, total = [Fraction(float(v)) for v in x], np.zeros((size, size), dtype=object)
    for block, rate, down in zip(blocks, rates, onward, strict=True):
        for j, amount in enumerate(flow):
            weight = Fraction(float(rate[j])) * amount**2
            for one in range(len(block)):
                for other in range(one):
                    apart = np.array([row[one] - row[other] for row in down], dtype=object)
                    total = total + weight * block[one][j] * block[other][j] * np.outer(
                        apart, apart
                    )
        flow = [sum(p * amount for p, amount in zip(row, flow, strict=True)) for row in block]
    return total


@pytest.mark.parametrize(
    "widths",
    [
        (3, 3, 3),
        (5, 4, 3),
        *(pytest.param((n,) * 4, marks=pytest.mark.slow) for n in (2, 4, 8, 12)),
    ],
)
def test_the_response_keeps_its_digits_at_a_vertex(widths):
    rng = np.random.default_rng(len(widths))
    blocks = []
    for width, out in pairwise(widths):
        weights = 10.0 ** rng.uniform(-12, -6, (out, width))
        weights[rng.integers(out, size=width), np.arange(width)] = 1.0
        blocks.append(weights / weights.sum(0))
    rates = [rng.uniform(0.5, 2, width) for width in widths[:-1]]
    x = rng.dirichlet(np.ones(widths[0]))
    stacks = [layer[..., None] for layer in blocks]
    groups = [stack[:, None] for stack in layers.groups([jnp.asarray(s) for s in stacks])]
    speeds = [s[:, None] for s in layers.groups([jnp.asarray(rate)[:, None] for rate in rates])]
    with jax.numpy_rank_promotion("allow"):
        program = jax.jit(lambda p, rho, x: layers.forward(p, rho, x, True)[1])
        found = program(groups, speeds, jnp.asarray(x)[None, :, None])[0, :, :, 0]
    exact = exact_response(blocks, rates, x)[:-1, :-1]
    size = max(abs(float(v)) for v in exact.ravel())
    # Not only against the largest entry, which stays large however near the vertices are.
    assert size < 1e-5
    worst = max(
        abs(Fraction(float(a)) - b) for a, b in zip(np.ravel(found), exact.ravel(), strict=True)
    )
    assert float(worst) <= 1e-14 * size


@pytest.mark.parametrize(
    "size", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 15)), 5]
)
@jax.numpy_rank_promotion("allow")
def test_small_systems_are_solved_and_decomposed_as_by_lapack(size):
    rng = np.random.default_rng(size)
    roots = rng.standard_normal((4, size, size))
    roots[2] = 0.0
    roots[3] = 1.0
    matrices = roots @ roots.swapaxes(1, 2)
    matrices[1] = np.diag(np.arange(size) % 3)  # has come apart before anything is turned
    last = jnp.moveaxis(jnp.asarray(matrices), 0, -1)
    fields = rng.standard_normal((2, size, 4))
    damped = np.moveaxis(matrices + np.eye(size), 0, -1)
    found = jax.jit(modes.solved)(damped, fields)
    wanted = np.linalg.solve(matrices + np.eye(size), np.transpose(fields, (2, 1, 0)))
    np.testing.assert_allclose(found, np.transpose(wanted, (2, 1, 0)), atol=1e-13)
    for way in (modes.decomposed, modes._by_rotations):
        values, vectors = jax.jit(way)(last)
        values, vectors = np.asarray(values).T, np.moveaxis(np.asarray(vectors), -1, 0)
        again = np.einsum("bki,bk,bkj->bij", vectors, values, vectors)
        np.testing.assert_allclose(again, matrices, atol=1e-13)
        np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrices), atol=1e-13)
    weighed = jax.jit(lambda one, other: modes.weighed(one, other, jnp.exp, 1e-14))(last, fields)
    values, vectors = np.linalg.eigh(matrices)
    function = np.einsum("bik,bk,bjk->bij", vectors, np.exp(values), vectors)
    np.testing.assert_allclose(
        weighed, np.einsum("bij,kjb->kib", function, fields), rtol=1e-11, atol=1e-11
    )
