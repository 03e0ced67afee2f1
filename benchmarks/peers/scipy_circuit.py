"""The same circuit by SciPy's sparse factors, one update after the other, in a plain loop."""

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu


def learner(plain, x, y, rule, nudge):
    """A run of one learner over an order of samples; `plain` tells nodes and ends."""
    one, other = plain.ends
    size, outputs = len(plain.free), len(plain.outputs)
    rows = np.concatenate([one, other, one, other])
    columns = np.concatenate([one, other, other, one])

    def run(g, order, scale):
        g, pace = np.array(g), 0.0
        for sample in np.asarray(order):
            values = np.concatenate([g, g, -g, -g])
            whole = csc_matrix((values, (rows, columns)), shape=(size + 1, size + 1))
            factor = splu(
                whole[:size, :size],
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
            states = np.zeros((plain.nodes, 1 + outputs))
            states[plain.held[: x.shape[1]], 0] = x[sample]
            flow = g * (states[plain.first, 0] - states[plain.second, 0])
            side = np.zeros((size, 1 + outputs))
            side[:, 0] = (np.bincount(other, flow, size + 1) - np.bincount(one, flow, size + 1))[
                :-1
            ]
            side[plain.outputs, np.arange(1, 1 + outputs)] = 1.0
            states[plain.free] = factor.solve(side)
            drops, seen = (
                states[plain.first] - states[plain.second],
                states[plain.free[plain.outputs]],
            )
            drop, push, error = drops[:, 0], drops[:, 1:], y[sample] - seen[:, 0]
            if rule in ("natural_gradient", "equilibrium_propagation"):
                speed = -drop * (push @ error)
            else:
                stiff = np.linalg.inv(
                    seen[:, 1:]
                    if rule == "coupled_learning"
                    else np.eye(outputs) + nudge * seen[:, 1:]
                )
                moved = push @ (stiff @ (nudge * error))
                speed = -moved * (drop + moved / 2) / nudge
            least = np.finfo(float).eps ** 0.5 * np.abs(y[sample]).max()
            pace = max(pace, np.abs((drop * speed) @ push).max() / max(np.abs(error).max(), least))
            score = speed / g
            step = scale / max(pace, np.abs(score).max())
            g = g * (1 + step * score) if rule == "natural_gradient" else g * np.exp(step * score)
        return g

    return run
