"""A circuit that learns, as short and as fast as plain JAX makes it.

One Cholesky factor of the nodal equations serves the free state and the response of every node to
forces at the outputs; everything else follows from the drops of both. It has no guarantee for
conductances far apart, and knows linear circuits that are driven and read as voltages only.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np


class Plain:
    """The equations of one graph."""

    def __init__(self, edges, sources, outputs, ground):
        self.first, self.second = np.asarray(edges).T
        self.nodes, self.held = 1 + int(np.max(edges)), [*sources, *ground]
        self.free = np.array(sorted(set(range(self.nodes)) - set(self.held)))
        place = np.full(self.nodes, len(self.free))
        place[self.free] = np.arange(len(self.free))
        self.ends = place[self.first], place[self.second]
        self.outputs, self.grounds = place[list(outputs)], len(ground)

    def states(self, g, rows):
        """Voltages of all nodes for rows of inputs, and for unit forces at the outputs."""
        size, (one, other) = len(self.free), self.ends
        matrix = jnp.zeros((size, size))
        for ends in (self.ends, self.ends[::-1]):
            matrix = matrix.at[ends].add(-g, mode="drop")
        whole = jnp.zeros(size + 1).at[one].add(g).at[other].add(g)[:-1]
        matrix = matrix.at[np.arange(size), np.arange(size)].set(whole)
        known = jnp.zeros((self.nodes, len(rows) + len(self.outputs)))
        held = jnp.concatenate([rows, jnp.zeros((len(rows), self.grounds))], axis=1)
        known = known.at[np.array(self.held), : len(rows)].set(held.T)
        flow = g[:, None] * (known[self.first] - known[self.second])
        side = jnp.zeros((size + 1, known.shape[1])).at[one].add(-flow).at[other].add(flow)[:-1]
        side = side.at[self.outputs, np.arange(len(rows), known.shape[1])].add(1.0)
        lower = jnp.linalg.cholesky(matrix, symmetrize_input=False)
        solve = partial(jax.lax.linalg.triangular_solve, lower, left_side=True, lower=True)
        return known.at[self.free].set(solve(solve(side), transpose_a=True)), solve

    def drops(self, states):
        return states[self.first] - states[self.second]

    def seen(self, states):
        return states[self.free[self.outputs]]


def inverse(matrix):
    """A positive matrix without LAPACK."""
    for k in range(len(matrix)):
        row = jnp.where(np.arange(len(matrix)) == k, 1.0, matrix[k]) / matrix[k, k]
        column = jnp.where(np.arange(len(matrix)) == k, 0.0, matrix[:, k])
        here = np.arange(len(matrix)) == k
        matrix = jnp.where(here[:, None] | here[None, :], 0.0, matrix)
        matrix = matrix + jnp.where(here[:, None], row[None, :], -column[:, None] * row[None, :])
    return matrix


def slope(rule, drop, push, impedance, error, nudge):
    """What the rule makes every conductance see."""
    if rule in ("natural_gradient", "equilibrium_propagation"):
        return -drop * (push @ error)
    if rule == "coupled_learning":
        force = inverse(impedance) @ (nudge * error)
    else:
        force = inverse(jnp.eye(len(error)) + nudge * impedance) @ (nudge * error)
    moved = push @ force
    return -moved * (drop + moved / 2) / nudge


def learner(plain, x, y, rule, nudge):
    """A compiled run of one learner over an order of samples."""
    x, y = jnp.asarray(x), jnp.asarray(y)

    @jax.jit
    def run(g, order, scale):
        def update(carry, sample):
            g, pace = carry
            states, _ = plain.states(g, x[sample][None])
            drops, seen = plain.drops(states), plain.seen(states)
            drop, push = drops[:, 0], drops[:, 1:]
            error = y[sample] - seen[:, 0]
            speed = slope(rule, drop, push, seen[:, 1:], error, nudge)
            moved = jnp.max(jnp.abs(drop * speed @ push))
            least = np.finfo(float).eps ** 0.5 * jnp.max(jnp.abs(y[sample]))
            pace = jnp.maximum(pace, moved / jnp.maximum(jnp.max(jnp.abs(error)), least))
            score = speed / g
            step = scale / jnp.maximum(pace, jnp.max(jnp.abs(score)))
            if rule == "natural_gradient":
                return (g * (1 + step * score), pace), None
            return (g * jnp.exp(step * score), pace), None

        return jax.lax.scan(update, (g, jnp.zeros(())), order)[0][0]

    return run
