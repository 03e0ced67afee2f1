r"""What laws of norm one do through a response that stands still.

Everything depends on the eigenvalues of K alone: a law acts along its modes. With $E(t) = e^{-KBt}$
the largest transient is the maximum of $\lVert E\rVert$, a worst-case time the last at which
$\lVert E\rVert$ exceeds a level, a mean time that of the root mean square $\lVert
E\rVert_F/\sqrt n$ over all first errors of size one, the noise $\int\lVert EKB\rVert_F^2
\mathrm{d}t$ (the trace of the stationary covariance under a noisy residual), the impulse
$\int\lVert BE\rVert_F\mathrm{d}t/\sqrt n$, and the work $\int\lVert
K^{1/2}BE\rVert_F^2\mathrm{d}t/n$. $E$ has a closed form for every law: exponentials, 2 x 2
exponentials, and for the geometric law, whose loop is G plus a nilpotent, a polynomial times an
exponential. Integrals are sums over a grid of logarithms of times, which converge faster than any
power of its step.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from whorl.budget import critical_turn, geometric_factors, gyration
from whorl.study import draws, frames
from whorl.study.kind import Arrays
from whorl.study.kinds.budgets import draws as own
from whorl.study.kinds.budgets.parameters import Budgets

LAWS = ("direct", "leaky", "paired", "kept", "geometric", "repair")
RESPONSES = ("selected", "joint")
LEVELS = (1e-3, 1e-6)
MEASURED = (
    *("rate", "gain", "transient", "worst_3", "worst_6", "mean_3", "mean_6"),
    *("noise", "impulse", "work"),
)
STEP = 0.1  # of the logarithm of time
COARSE = 8  # steps between two looks at the spectral norm


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
        rank = (values > p.rank_tol * values[:, :1]).sum(axis=1)
        found[f"{name}_values"], found[f"{name}_rank"] = values, rank
        size = values.shape[1]
        random = np.stack([own.orthogonal(p.seed, t, size) for t in range(p.trials)])
        laid = {key: np.zeros(p.trials) for key in ("random", "diagonal", "below", "gyration")}
        measured = np.zeros((len(LAWS), len(MEASURED), p.trials))
        for many in np.unique(rank):
            here = np.flatnonzero(rank == many)
            some = values[here, :many]
            for key, column in bounds(some, random[here]).items():
                laid[key][here] = column
            for number, law in enumerate(LAWS):
                measured[number][:, here] = measures(law, some, p.least_cosine)
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
def _decomposed(values: jax.Array) -> tuple[jax.Array, ...]:
    def one(spectrum: jax.Array) -> tuple[jax.Array, ...]:
        every = jnp.ones(spectrum.shape, dtype=bool)
        left, right = geometric_factors(spectrum, every)
        return left, right, gyration(jnp.diag(spectrum), every)

    return jax.vmap(one)(values)


def bounds(values: np.ndarray, random: np.ndarray) -> Arrays:
    """How well the constructions reach the bounds, and the rate of a random rotation.

    `diagonal` and `below` are what is left of the geometric law's triangle, over the geometric
    mean; `gyration` the distance of the loop's real parts from the arithmetic mean, over it.
    """
    left, right, skew = (np.asarray(part) for part in _decomposed(jnp.asarray(values)))
    mean, size = _mean(values), values.shape[1]
    product = np.einsum("bki,bk,bkj->bij", left, values, right)
    diagonal = np.einsum("bii->bi", product)
    order = np.argsort(-(np.abs(product) > 1e-9 * mean[:, None, None]).sum(axis=2), axis=1)
    ordered = np.take_along_axis(
        np.take_along_axis(product, order[:, :, None], axis=1), order[:, None], axis=2
    )
    loop = skew + values[:, :, None] * np.eye(size)
    turned = values[:, :, None] * random[:, :size, :size]
    # A principal part of a rotation has a norm of at most one.
    return {
        "random": np.linalg.eigvals(turned).real.min(axis=1),
        "diagonal": np.abs(diagonal / mean[:, None] - 1).max(axis=1),
        "below": np.abs(np.tril(ordered, -1)).max(axis=(1, 2)) / mean,
        "gyration": np.abs(
            np.linalg.eigvals(loop).real / values.mean(axis=1, keepdims=True) - 1
        ).max(axis=1),
    }


def _mean(values: np.ndarray) -> np.ndarray:
    return np.exp(np.log(values).mean(axis=1))


class Loop(NamedTuple):
    """A law through a response in the coordinates of its own form."""

    flow: Callable[[np.ndarray], np.ndarray]  # times (b, t) to E, (b, t, n, n)
    loop: np.ndarray  # K B, (b, n, n)
    law: np.ndarray  # B, up to an orthogonal factor on its left
    weighed: np.ndarray  # K^(1/2) B, likewise
    rate: np.ndarray


def made(law: str, values: np.ndarray, least: float) -> Loop:
    """The loop of a law of norm one; `repair` has the norm that it needs."""
    if law == "geometric":
        return _geometric(values)
    if law in ("paired", "kept"):
        return _paired(values, least if law == "kept" else 0.0)
    weights = {"direct": np.ones_like(values), "leaky": 1 / (values + 1), "repair": 1 / values}[law]
    eye, rates = np.eye(values.shape[1]), values * weights
    wide = {name: part[:, :, None] * eye for name, part in {"a": rates, "b": weights}.items()}
    weighed = (np.sqrt(values) * weights)[:, :, None] * eye

    def flow(times: np.ndarray) -> np.ndarray:
        return np.exp(-rates[:, None] * times[:, :, None])[..., None] * eye

    return Loop(flow, wide["a"], wide["b"], weighed, rates.min(axis=1))


def _geometric(values: np.ndarray) -> Loop:
    left, right, _ = (np.asarray(part) for part in _decomposed(jnp.asarray(values)))
    mean, size = _mean(values), values.shape[1]
    loop = np.einsum("bki,bk,bkj->bij", left, values, right)
    rest = loop - mean[:, None, None] * np.eye(size)
    powers = [np.broadcast_to(np.eye(size), rest.shape)]
    for k in range(1, size):
        powers.append(powers[-1] @ rest / -k)

    def flow(times: np.ndarray) -> np.ndarray:
        grown = np.zeros((*times.shape, size, size))
        for power in powers[::-1]:
            grown = grown * times[..., None, None] + power[:, None]
        return grown * np.exp(-mean[:, None] * times)[..., None, None]

    weighed = np.sqrt(values)[:, :, None] * right
    rate = np.einsum("bii->bi", loop).min(axis=1)
    return Loop(flow, loop, np.broadcast_to(np.eye(size), rest.shape), weighed, rate)


def _paired(values: np.ndarray, least: float) -> Loop:
    trials, size = values.shape
    law = np.zeros((trials, size, size))
    blocks = []
    for i in range((size + 1) // 2):
        j = size - 1 - i
        if i == j:
            law[:, i, i] = 1.0
            continue
        cosine, sine = (
            np.asarray(part) for part in critical_turn(*jnp.asarray(values[:, [i, j]].T))
        )
        short = cosine < least
        cosine = np.where(short, least, cosine)
        sine = np.where(short, np.sqrt(1 - least**2), sine)
        law[:, i, i] = law[:, j, j] = cosine
        law[:, j, i], law[:, i, j] = sine, -sine
        blocks.append((i, j, *_pair(values[:, i], values[:, j], cosine, short)))
    loop = values[:, :, None] * law
    slow = [slow for *_, slow, _ in blocks]

    def flow(times: np.ndarray) -> np.ndarray:
        found = np.zeros((*times.shape, size, size))
        for i, j, middle, slow, apart in blocks:
            # e^(-mt) cosh(dt) and e^(-mt) sinh(dt) / d, without the exponential that grows
            decay = np.exp(-slow[:, None] * times)
            both = 2 * apart[:, None] * times
            safe = np.where(both > 0, both, 1.0)
            sinh = decay * times * np.where(both > 0, -np.expm1(-safe) / safe, 1.0)
            cosh = decay * (1 + np.exp(-both)) / 2
            for a, b in ((i, i), (i, j), (j, i), (j, j)):
                off = loop[:, a, b] - (middle if a == b else 0.0)
                found[..., a, b] = (cosh if a == b else 0.0) - off[:, None] * sinh
        if size % 2:
            found[..., size // 2, size // 2] = np.exp(-values[:, size // 2, None] * times)
        return found

    rate = np.min([*slow, *([values[:, size // 2]] if size % 2 else [])], axis=0)
    return Loop(flow, loop, law, np.sqrt(values)[:, :, None] * law, rate)


def _pair(
    strong: np.ndarray, weak: np.ndarray, cosine: np.ndarray, short: np.ndarray
) -> tuple[np.ndarray, ...]:
    """The mean of a pair's two eigenvalues, the smaller one, and half their distance."""
    middle = cosine * (strong + weak) / 2
    meeting = np.sqrt(strong * weak)
    middle = np.where(short, middle, meeting)
    apart = np.where(short, np.sqrt(np.maximum(middle**2 - strong * weak, 0.0)), 0.0)
    return middle, strong * weak / (middle + apart), apart


def measures(law: str, values: np.ndarray, least: float) -> np.ndarray:
    """All measures of a law, (measures, trials)."""
    made_ = made(law, values, least)
    size, rate = values.shape[1], made_.rate
    first = np.log(1e-17 / values[:, 0])
    last = np.log(200 / rate)
    count = int(np.ceil((last - first).max() / STEP))
    times = np.exp(first[:, None] + STEP * np.arange(count))
    flows = made_.flow(times)
    sizes = np.sqrt((flows**2).sum(axis=(2, 3)))
    spent, weighed = (
        ((part[:, None] @ flows) ** 2).sum(axis=(2, 3)) for part in (made_.law, made_.weighed)
    )
    noise = ((flows @ made_.loop[:, None]) ** 2).sum(axis=(2, 3))
    total = STEP * times
    found = [rate, np.linalg.norm(made_.law, 2, axis=(1, 2)), _transient(made_, times, sizes)]
    for level in LEVELS:
        ends = [_last(times, sizes, part, made_, _frobenius) for part in (level * size**0.5, level)]
        found.append(_between(ends[0], ends[1], level, made_, _spectral))
    mean = [_last(times, sizes, level * size**0.5, made_, _frobenius) for level in LEVELS]
    integrals = [
        (noise * total).sum(axis=1),
        (np.sqrt(spent) * total).sum(axis=1) / size**0.5,
        (weighed * total).sum(axis=1) / size,
    ]
    return np.stack([*found, *mean, *integrals])


Norm = Callable[[np.ndarray], np.ndarray]


def _frobenius(flows: np.ndarray) -> np.ndarray:
    return np.sqrt((flows**2).sum(axis=(2, 3)))


def _spectral(flows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(flows, 2, axis=(2, 3))


def _last(
    times: np.ndarray, sizes: np.ndarray, level: float, made_: Loop, norm: Norm
) -> np.ndarray:
    """The last time at which a norm exceeds a level, between two neighbours on the grid."""
    above = sizes > level
    at = np.where(above.any(axis=1), above.shape[1] - 1 - above[:, ::-1].argmax(axis=1), 0)
    after = np.minimum(at + 1, times.shape[1] - 1)
    rows = np.arange(len(times))
    return _between(times[rows, at], times[rows, after], level, made_, norm)


def _between(
    low: np.ndarray, high: np.ndarray, level: float, made_: Loop, norm: Norm
) -> np.ndarray:
    """Where a norm falls through a level, by halving."""
    for _ in range(60):
        middle = np.sqrt(low * high)
        above = norm(made_.flow(middle[:, None]))[:, 0] > level
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


def _transient(made_: Loop, times: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The largest norm of E: one, or the top found by golden sections around the largest."""
    coarse = times[:, ::COARSE]
    found = _spectral(made_.flow(coarse))
    at = np.clip(found.argmax(axis=1), 1, coarse.shape[1] - 2)
    rows = np.arange(len(times))
    low, high = (np.log(coarse[rows, at + k]) for k in (-1, 1))
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        values = [_spectral(made_.flow(np.exp(part)[:, None]))[:, 0] for part in (one, two)]
        better = values[0] > values[1]
        low, high = np.where(better, low, one), np.where(better, two, high)
    return np.maximum(1.0, _spectral(made_.flow(np.exp((low + high) / 2)[:, None]))[:, 0])
