r"""Hidden layers, through the library's own loop.

With layers between input and output the prediction is $P^{(L-1)} \cdots P^{(0)} x$, and the problem
is no longer convex: several starts are tried, and the best is kept. What a hidden layer of width
$m$ adds is not freedom but a limit: the product is a transition matrix of nonnegative rank at most
$m$ (latent budgets).

The rule is damped Gauss-Newton in the metric of the simplex, as `gauss_newton`, with a weight per
output: $w_r$ for the squared loss, Fisher's $w_r / q_{ri}$ for Kullback-Leibler. With $v = W(e -
Jd)/\mu$ its step is $d = MJ^\mathsf{T}v$, so that $J^\mathsf{T}v$ is a score off the support, too:
a weight that has vanished can tell when to return (`faced`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl.learning.baseline import Rule, learn, rooted_jacobian
from whorl.learning.policy import Scores
from whorl.system import Fields, System
from whorl.systems.faced import faced
from whorl.systems.layered import Network

LEAST = 1e-10  # weights below this vanish
BATCH = 50  # updates between two looks at the gap


class Fisher(Rule):
    """Damped Gauss-Newton of a weighted loss, squared or Kullback-Leibler."""

    mu: Float[Array, ""]
    weights: Float[Array, "n"]
    likelihood: bool = eqx.field(static=True)

    def scores(self, system: System, inputs: Array, residual: Fields) -> Scores:
        trace = system.trace(inputs)
        each = self.weights[:, None] / (jnp.maximum(trace[-1], 1e-12) if self.likelihood else 1.0)
        each = jnp.broadcast_to(each, residual.shape)
        seen = rooted_jacobian(system, inputs)
        damped = (seen.T * each.ravel()[None, :]) @ seen + self.mu * jnp.eye(seen.shape[1])
        step = jnp.linalg.solve(damped, seen.T @ (each * residual).ravel())
        left = each * (residual - (seen @ step).reshape(residual.shape))
        return system.scores(trace, left / self.mu)


def fit(
    widths: tuple[int, ...],
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    likelihood: bool,
    seeds: list[int],
    tol: float,
    max_iter: int,
) -> tuple[list[np.ndarray], float, int]:
    """The best layers of several starts, the gap of their slopes, and the updates made for them.

    `rows` are inputs, targets and weights that sum to one. Each start ends when a step along the
    slope promises less than `tol`, or after `max_iter` updates.
    """
    inputs, targets, weights = rows
    found = []
    with jax.enable_x64(True):
        for seed in seeds:
            net = faced(Network.random(widths, seed=seed, imbalance=1.0, floor=0.1), LEAST)
            made, mu, value, gap = 0, 1e-2, np.inf, np.inf
            while made < max_iter and gap > tol:
                rule = Fisher(jnp.asarray(mu), jnp.asarray(weights), likelihood)
                order = np.zeros(BATCH, dtype=int)
                net = learn(
                    net,
                    inputs,
                    targets,
                    rule=rule,
                    scale=1.0,
                    schedule=order,
                    full_batch=True,
                    record=False,
                ).system
                made, mu = made + BATCH, max(mu / 3, 1e-6)
                value, gap = _looked_at(net, inputs, targets, weights, likelihood)
            found.append((value, [np.asarray(layer) for layer in net.layers], gap, made))
    value, layers, gap, made = min(found, key=lambda one: one[0])
    return layers, gap, made


def _looked_at(
    net: Network, inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray, likelihood: bool
) -> tuple[float, float]:
    """The loss, and the Frank-Wolfe gap of every layer for the others as they are, added up."""

    def loss(layers: tuple[Array, ...]) -> Array:
        out = net.with_blocks(layers).outputs(jnp.asarray(inputs))
        if likelihood:
            terms = -targets * jnp.log(jnp.where(targets > 0, out, 1.0))
        else:
            terms = (targets - out) ** 2 / 2
        return jnp.sum(weights[:, None] * terms)

    value, slopes = jax.value_and_grad(loss)(net.layers)
    gaps = [
        jnp.sum(p * (g - jnp.min(g, axis=0, keepdims=True)))
        for p, g in zip(net.layers, slopes, strict=True)
    ]
    return float(value), float(sum(gaps))
