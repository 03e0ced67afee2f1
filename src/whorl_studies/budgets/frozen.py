r"""What laws of norm one do through a response that stands still.

Everything depends on the eigenvalues of K alone: a law acts along its modes. With $E(t) = e^{-KBt}$
the largest transient is the maximum of $\lVert E\rVert$, a worst-case time the last at which
$\lVert E\rVert$ exceeds a level, a mean time that of the root mean square $\lVert
E\rVert_F/\sqrt n$ over all first errors of size one, the noise $\int\lVert EKB\rVert_F^2
\mathrm{d}t$ (the trace of the stationary covariance under a noisy residual), the impulse
$\int\lVert BE\rVert_F\mathrm{d}t/\sqrt n$, and the work $\int\lVert
K^{1/2}BE\rVert_F^2\mathrm{d}t/n$. $E$ has a closed form for every law: exponentials, 2 x 2
exponentials, and for the geometric law, whose loop is G plus a nilpotent, a polynomial times an
exponential. Integrals are sums over a grid of logarithms of times, whose error falls like
$e^{-2\pi d/h}$ with its step $h$, $d$ being the distance of the nearest complex time at which the
integrand is singular. That of a square is far. A norm is a root, and where $E$ nearly vanishes for
a moment it is near: the step of an impulse is halved until two sums agree.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from whorl.study import draws, frames
from whorl.study.compute import geometric_factors, gyration
from whorl.study.kind import Arrays
from whorl_studies.budgets import draws as own
from whorl_studies.budgets.parameters import Budgets

LAWS = ("direct", "leaky", "paired", "kept", "geometric", "repair")
RESPONSES = ("selected", "joint")
LEVELS = (1e-3, 1e-6)
MEASURED = (
    *("rate", "gain", "transient", "worst_3", "worst_6", "mean_3", "mean_6"),
    *("noise", "impulse", "work"),
)
REACHED = ("random", "diagonal", "below", "gyration")
STEP = 0.1  # of the logarithm of time
COARSE = 8  # steps between two looks at the spectral norm
SETTLED = 1e-10  # of a sum and that of twice its step; about the square of it is left


class Frozen(NamedTuple):
    """The stage of one population and depth."""

    population: str
    depth: int

    @property
    def name(self) -> str:
        """As in `structural-depth2`."""
        return f"{self.population}-depth{self.depth}"


def populations(p: Budgets) -> list[str]:
    """The families of networks: the structural study's, and the horizon study's by imbalance."""
    return ["structural", *(f"beta_{float(beta)!r}" for beta in p.betas)]


def compute(p: Budgets, stage: Frozen) -> Arrays:
    """Eigenvalues, bounds and measures of all trials."""
    found: Arrays = {}
    for name, values in spectra(p, stage).items():
        kept = values > p.rank_tol * values[:, :1]
        rank, size = kept.sum(axis=1), values.shape[1]
        found[f"{name}_values"], found[f"{name}_rank"] = values, rank
        random = np.stack([own.orthogonal(p.seed, t, size) for t in range(p.trials)])
        # All at once, so that there is one compiled program whatever the ranks.
        made_ = [np.asarray(part) for part in decomposed(values, kept)]
        laid = {key: np.zeros(p.trials) for key in REACHED}
        measured = np.zeros((len(LAWS), len(MEASURED), p.trials))
        for many in np.unique(rank):
            here = np.flatnonzero(rank == many)
            some = values[here, :many]
            left, right, skew, turned = (part[here, :many, :many] for part in (*made_, random))
            for key, column in bounds(some, left, right, skew, turned).items():
                laid[key][here] = column
            for number, law in enumerate(LAWS):
                loop = made(law, some, p.least_cosine, left, right)
                measured[number][:, here] = measures(loop)
        found |= {f"{name}_{key}": column for key, column in laid.items()}
        found[f"{name}_measured"] = measured
    return found


def spectra(p: Budgets, stage: Frozen) -> dict[str, np.ndarray]:
    """Eigenvalues, largest first, of the sample with the largest residual and of all six."""
    x, y = draws.tasks(p.seed, p.trials, p.concentration)
    layers = np.stack([_layers(p, stage, trial) for trial in range(p.trials)])
    chosen = draws.largest_residual(layers, x, y)
    shown = {"selected": x[np.arange(p.trials), chosen][:, None], "joint": x}
    found = {}
    for name, inputs in shown.items():
        factor = frames.zero_sum(_factor(layers, inputs))
        roots = np.linalg.svd(factor, compute_uv=False)
        found[name] = roots[:, : 2 if name == "selected" else 6] ** 2
    return found


def _layers(p: Budgets, stage: Frozen, trial: int) -> np.ndarray:
    if stage.population == "structural":
        return own.structural_layers(p.seed, trial, stage.depth, p.spread, p.structural_floor)
    beta = float(stage.population.removeprefix("beta_"))
    return draws.softmax_layers(p.seed, trial, stage.depth, beta, p.floor)


def _factor(layers: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """A factor of K, (trials, samples * 3, m): a column for each pair of entries of each column."""
    trials, depth = layers.shape[:2]
    flow, behind = inputs, np.broadcast_to(np.eye(3), (trials, 3, 3))
    into, maps = [], []
    for number in range(depth):
        into.append(flow)
        flow = np.einsum("bij,bsj->bsi", layers[:, number], flow)
    for number in range(depth)[::-1]:
        maps.insert(0, behind)
        behind = behind @ layers[:, number]
    parts = [
        np.einsum(
            "bsc,bo,bc->bsoc",
            x,
            carried[:, :, j] - carried[:, :, k],
            np.sqrt(layers[:, number, j] * layers[:, number, k]),
        )
        for number, (x, carried) in enumerate(zip(into, maps, strict=True))
        for j, k in ((0, 1), (0, 2), (1, 2))
    ]
    return np.concatenate(parts, axis=3).reshape(trials, -1, 3 * 3 * depth)


@jax.jit
def decomposed(values: Any, kept: Any) -> tuple[jax.Array, ...]:
    """Q and P of the geometric law, and a gyration, of every spectrum, (b, n, n)."""

    def one(spectrum: jax.Array, kept: jax.Array) -> tuple[jax.Array, ...]:
        symmetric = jnp.diag(jnp.where(kept, spectrum, 0.0))
        return *geometric_factors(spectrum, kept), gyration(symmetric, kept)

    return jax.vmap(one)(values, kept)


def bounds(
    values: np.ndarray, left: np.ndarray, right: np.ndarray, skew: np.ndarray, random: np.ndarray
) -> Arrays:
    """How well the constructions reach the bounds, and the rate of a random rotation.

    `diagonal` and `below` are what is left of the geometric law's triangle, over the geometric
    mean; `gyration` the distance of the loop's real parts from the arithmetic mean, over it.
    """
    mean, size = _mean(values), values.shape[1]
    product = np.einsum("bki,bk,bkj->bij", left, values, right)
    diagonal = np.einsum("bii->bi", product)
    order = np.argsort(-(np.abs(product) > 1e-9 * mean[:, None, None]).sum(axis=2), axis=1)
    ordered = np.take_along_axis(
        np.take_along_axis(product, order[:, :, None], axis=1), order[:, None], axis=2
    )
    loop = skew + values[:, :, None] * np.eye(size)
    turned = values[:, :, None] * random
    # A principal part of a rotation has a norm of at most one.
    return {
        "random": np.real(np.linalg.eigvals(turned)).min(axis=1),
        "diagonal": np.abs(diagonal / mean[:, None] - 1).max(axis=1),
        "below": np.abs(np.tril(ordered, -1)).max(axis=(1, 2)) / mean,
        "gyration": np.abs(
            np.linalg.eigvals(loop).real / values.mean(axis=1, keepdims=True) - 1
        ).max(axis=1),
    }


def _mean(values: np.ndarray) -> np.ndarray:
    return np.exp(np.log(values).mean(axis=1))


class Loop(NamedTuple):
    """A law through responses in the coordinates of its own form, k blocks of m directions each."""

    form: Callable[..., np.ndarray]  # times (b, t) and the parts to E, (b, t, k, m, m)
    parts: tuple[np.ndarray, ...]
    values: np.ndarray  # of K, (b, n)
    loop: np.ndarray  # K B, (b, k, m, m)
    law: np.ndarray  # B, up to an orthogonal factor on its left
    weighed: np.ndarray  # K^(1/2) B, likewise
    rate: np.ndarray

    def flow(self, times: np.ndarray) -> np.ndarray:
        """E at times (b, t)."""
        return self.form(times, *self.parts)

    def of(self, rows: np.ndarray) -> "Loop":
        """Some of the responses."""
        return Loop(self.form, tuple(one[rows] for one in self.parts), *(x[rows] for x in self[2:]))


def made(law: str, values: np.ndarray, least: float, left: np.ndarray, right: np.ndarray) -> Loop:
    """The loop of a law of norm one; `repair` has the norm that it needs."""
    if law == "geometric":
        return _geometric(values, left, right)
    if law in ("paired", "kept"):
        return _paired(values, least if law == "kept" else 0.0)
    weights = {"direct": np.ones_like(values), "leaky": 1 / (values + 1), "repair": 1 / values}[law]
    rates = values * weights
    loop, act, weighed = (x[..., None, None] for x in (rates, weights, np.sqrt(values) * weights))
    return Loop(_decaying, (rates,), values, loop, act, weighed, rates.min(axis=1))


def _decaying(times: np.ndarray, rates: np.ndarray) -> np.ndarray:
    return np.exp(-rates[:, None] * times[:, :, None])[..., None, None]


def _geometric(values: np.ndarray, left: np.ndarray, right: np.ndarray) -> Loop:
    mean, eye = _mean(values), np.eye(values.shape[1])
    loop = np.einsum("bki,bk,bkj->bij", left, values, right)
    rest = loop - mean[:, None, None] * eye
    powers = [np.broadcast_to(eye, rest.shape)]
    for k in range(1, len(eye)):
        powers.append(powers[-1] @ rest / -k)
    rate = np.einsum("bii->bi", loop).min(axis=1)
    weighed = np.sqrt(values)[:, :, None] * right
    loop, law, weighed = (part[:, None] for part in (loop, powers[0], weighed))
    return Loop(_growing, (mean, np.stack(powers, axis=1)), values, loop, law, weighed, rate)


def _growing(times: np.ndarray, mean: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """The exponential of a triangle with one value on its diagonal."""
    grown = np.zeros((*times.shape, *powers.shape[2:]))
    for power in np.moveaxis(powers, 1, 0)[::-1]:
        grown = grown * times[..., None, None] + power[:, None]
    return (grown * np.exp(-mean[:, None] * times)[..., None, None])[:, :, None]


def _paired(values: np.ndarray, least: float) -> Loop:
    """Pairs from the outside in; the middle of an odd number is paired with what stays at zero."""
    half, odd = values.shape[1] // 2, values.shape[1] % 2
    strong, weak = values[:, :half], values[:, ::-1][:, :half]
    total = strong + weak
    cosine, sine = 2 * np.sqrt(strong / total) * np.sqrt(weak / total), (strong - weak) / total
    short = cosine < least
    cosine = np.where(short, least, cosine)
    sine = np.where(short, np.sqrt(1 - least**2), sine)
    middle, slow, apart = _pair(strong, weak, cosine, short)
    law = np.stack([np.stack([cosine, -sine], axis=-1), np.stack([sine, cosine], axis=-1)], axis=-2)
    both = np.stack([strong, weak], axis=-1)[..., None]
    lonely = values[:, half : half + odd]
    off = both * law - middle[..., None, None] * np.eye(2)
    ones = np.ones_like(lonely)
    every = ((both * law, lonely), (law, ones), (np.sqrt(both) * law, np.sqrt(lonely)))
    loop, law, weighed = (np.concatenate([x, _single(one)], axis=1) for x, one in every)
    rate = np.concatenate([slow, lonely], axis=1).min(axis=1)
    return Loop(_turning, (slow, apart, off, lonely), values, loop, law, weighed, rate)


def _single(part: np.ndarray) -> np.ndarray:
    return part[..., None, None] * np.diag([1.0, 0.0])


def _turning(
    times: np.ndarray, slow: np.ndarray, apart: np.ndarray, off: np.ndarray, lonely: np.ndarray
) -> np.ndarray:
    """The exponentials of pairs: e^(-mt) cosh(dt) and e^(-mt) sinh(dt) / d, without the one that
    grows.
    """
    t = times[:, :, None]
    decay, far = np.exp(-slow[:, None] * t), 2 * apart[:, None] * t
    safe = np.where(far > 0, far, 1.0)
    sinh = decay * t * np.where(far > 0, -np.expm1(-safe) / safe, 1.0)
    cosh = decay * (1 + np.exp(-far)) / 2
    found = cosh[..., None, None] * np.eye(2) - off[:, None] * sinh[..., None, None]
    return np.concatenate([found, _single(np.exp(-lonely[:, None] * t))], axis=2)


def _pair(
    strong: np.ndarray, weak: np.ndarray, cosine: np.ndarray, short: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The mean of a pair's two eigenvalues, the smaller one, and half their distance."""
    middle = cosine * (strong + weak) / 2
    meeting = np.sqrt(strong * weak)
    middle = np.where(short, middle, meeting)
    apart = np.where(short, np.sqrt(np.maximum(middle**2 - strong * weak, 0.0)), 0.0)
    return middle, strong * weak / (middle + apart), apart


def measures(made_: Loop) -> np.ndarray:
    """All measures of a law, (measures, trials)."""
    size = made_.values.shape[1]
    times = _grid(made_, STEP)
    flows = made_.flow(times)
    sizes, total = _frobenius(flows), STEP * times
    found = [made_.rate, _spectral(made_.law[:, None])[:, 0], _transient(made_, times)]
    # The spectral norm is at most the Frobenius norm, and at least its share of it.
    mean, least = np.split(
        _last(times, sizes, np.outer([size**0.5, 1.0], LEVELS).ravel(), made_), 2, 1
    )
    found += [*_between(mean, least, np.array(LEVELS), made_, _spectral).T, *mean.T]
    noise = _squares(flows @ made_.loop[:, None])
    work = _squares(made_.weighed[:, None] @ flows)
    found += [(noise * total).sum(axis=1), impulse(made_), (work * total).sum(axis=1) / size]
    return np.stack(found)


def impulse(made_: Loop, step: float = STEP) -> np.ndarray:
    """The integral of the root mean square potential, with half the step where it is not settled.

    Halving the step squares the error.
    """
    times = _grid(made_, step)
    flows = made_.flow(times)
    # A law with larger blocks is a rotation, which changes no size.
    driven = flows * made_.law[:, None] if flows.shape[-1] == 1 else flows
    part = _frobenius(driven) * (step * times)
    found = part.sum(axis=1)
    rough = np.abs(2 * part[:, ::2].sum(axis=1) - found) > SETTLED * found
    found /= made_.values.shape[1] ** 0.5
    if rough.any():
        found[rough] = impulse(made_.of(rough), step / 2)
    return found


def _grid(made_: Loop, step: float) -> np.ndarray:
    """Times from before anything happens until all is over, (b, t), evenly spaced in logarithms."""
    first, last = np.log(1e-17 / made_.values[:, 0]), np.log(200 / made_.rate)
    return np.exp(first[:, None] + step * np.arange(int(np.ceil((last - first).max() / step))))


Norm = Callable[[np.ndarray], np.ndarray]


def _squares(matrices: np.ndarray) -> np.ndarray:
    return (matrices**2).sum(axis=(2, 3, 4))


def _frobenius(matrices: np.ndarray) -> np.ndarray:
    """The root of the sum of squares of matrices (b, t, k, m, m)."""
    return np.sqrt(_squares(matrices))


def _spectral(matrices: np.ndarray) -> np.ndarray:
    """The largest singular value of any block."""
    size = matrices.shape[-1]
    if size == 1:
        return np.abs(matrices).max(axis=(2, 3, 4))
    if size > 2:
        return np.linalg.norm(matrices, 2, axis=(3, 4)).max(axis=2)
    # |a + d, b - c| + |a - d, b + c| is twice the largest singular value of two by two.
    (a, b), (c, d) = np.moveaxis(matrices, (-2, -1), (0, 1))
    return ((np.hypot(a + d, b - c) + np.hypot(a - d, b + c)) / 2).max(axis=2)


def _last(times: np.ndarray, sizes: np.ndarray, levels: np.ndarray, made_: Loop) -> np.ndarray:
    """The last times at which the Frobenius norm exceeds some levels, (b, levels), between
    neighbours on the grid.
    """
    ends = []
    for level in levels:
        above = sizes > level
        at = np.where(above.any(axis=1), above.shape[1] - 1 - above[:, ::-1].argmax(axis=1), 0)
        ends.append([at, np.minimum(at + 1, times.shape[1] - 1)])
    low, high = (
        np.take_along_axis(times, np.stack(one, axis=1), axis=1) for one in zip(*ends, strict=True)
    )
    return _between(low, high, levels, made_, _frobenius)


def _between(
    low: np.ndarray, high: np.ndarray, levels: np.ndarray, made_: Loop, norm: Norm
) -> np.ndarray:
    """Where a norm falls through some levels, by halving."""
    for _ in range(60):
        middle = np.sqrt(low * high)
        above = norm(made_.flow(middle)) > levels
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def _transient(made_: Loop, times: np.ndarray) -> np.ndarray:
    """The largest norm of E: one, or the top found by golden sections around the largest."""
    coarse = times[:, ::COARSE]
    found = _spectral(made_.flow(coarse))
    at = np.clip(found.argmax(axis=1), 1, coarse.shape[1] - 2)
    rows = np.arange(len(times))
    low, high = (np.log(coarse[rows, at + k]) for k in (-1, 1))
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        left, right = _spectral(made_.flow(np.exp(np.stack([one, two], axis=1)))).T
        better = left > right
        low, high = np.where(better, low, one), np.where(better, two, high)
    return np.maximum(1.0, _spectral(made_.flow(np.exp((low + high) / 2)[:, None]))[:, 0])
