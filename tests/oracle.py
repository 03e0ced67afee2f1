"""The second route: the paper's formulas in plain NumPy, with no line of the library in them.

Slow, explicit and complex-valued where a derivative is wanted: the imaginary part of f(x + ih) / h
is the derivative of an analytic f to the last bit, with no difference to cancel. Layers are lists
of arrays `(out, in)`, inputs rows `(samples, in)`.
"""

import numpy as np

H = 1e-30  # the complex step: small enough that its square is nothing


def predict(layers, inputs):
    flow = np.asarray(inputs).T
    for layer in layers:
        flow = layer @ flow
    return flow.T


def covariance(p):
    return np.diag(p) - np.outer(p, p)


def exponential_step(p, s, eta):
    grown = p * np.exp(eta * s)
    return grown / grown.sum(axis=0)


def step_derivatives(p, s):
    """The first two derivatives of the exponential step at zero, by complex step.

    Of the step, and of its velocity along the path.
    """
    moved = exponential_step(p.astype(complex), s, 1j * H)
    moving = moved * (s - (moved * s).sum(axis=0))
    return moved.imag / H, moving.imag / H


def columns(layers):
    """Every parameter as (layer, row, column), column after column."""
    return [
        (n, row, column)
        for n, layer in enumerate(layers)
        for column in range(layer.shape[1])
        for row in range(layer.shape[0])
    ]


def jacobian(layers, inputs, adjoint=None):
    """d predictions / d parameters by complex step, `(samples * out, parameters)`.

    Through other layers behind the moved one, if given.
    """
    behind = layers if adjoint is None else adjoint
    rows = []
    for n, row, column in columns(layers):
        moved = [layer.astype(complex) for layer in layers]
        moved[n][row, column] += 1j * H
        rows.append(np.imag(predict([*moved[: n + 1], *behind[n + 1 :]], inputs)).ravel() / H)
    return np.array(rows).T


def mobility(layers, rates):
    """The block-diagonal mobility, each block rho Q(p)."""
    size = sum(layer.size for layer in layers)
    result, at = np.zeros((size, size)), 0
    for layer, rate in zip(layers, rates, strict=True):
        for column in range(layer.shape[1]):
            d = layer.shape[0]
            result[at : at + d, at : at + d] = rate[column] * covariance(layer[:, column])
            at += d
    return result


def response(layers, rates, inputs):
    jac = jacobian(layers, inputs)
    return jac @ mobility(layers, rates) @ jac.T


def root_of_response(layers, rates, inputs):
    """J S with M = S S^T, blocks S = sqrt(rho) diag(u) (I - u u^T), u = sqrt(p).

    The response is this times its transpose.
    """
    parts = []
    for layer, rate in zip(layers, rates, strict=True):
        for column, one in zip(layer.T, rate, strict=True):
            u = np.sqrt(column)
            parts.append(np.sqrt(one) * np.diag(u) @ (np.eye(len(u)) - np.outer(u, u)))
    at, root = 0, jacobian(layers, inputs)
    for part in parts:
        root[:, at : at + len(part)] = root[:, at : at + len(part)] @ part
        at += len(part)
    return root


def magnitude(layers, rates, inputs):
    """The size of what the response sums over, before any of it cancels.

    The norm of |J| |M| |J|^T.
    """
    jac = np.abs(jacobian(layers, inputs))
    return np.linalg.norm(jac @ np.abs(mobility(layers, rates)) @ jac.T)


def logit_response(layers, rates, inputs):
    """The response through logit coordinates.

    J_z diag(rho / p) J_z^T, where the columns are softmax(z) on their support.
    """
    rows, weights = [], []
    for n, row, column in columns(layers):
        if layers[n][row, column] == 0:
            continue
        kick = np.zeros(layers[n].shape, dtype=complex)
        kick[row, column] = 1j * H
        moved = [layer.astype(complex) for layer in layers]
        moved[n] = exponential_step(moved[n], kick, 1.0)
        rows.append(np.imag(predict(moved, inputs)).ravel() / H)
        weights.append(rates[n][column] / layers[n][row, column])
    jac = np.array(rows).T
    return (jac * np.array(weights)) @ jac.T


def scores(layers, rates, inputs, potential):
    """rho J^T v, reshaped to one array per layer."""
    flat, result, at = jacobian(layers, inputs).T @ np.asarray(potential).ravel(), [], 0
    for layer, rate in zip(layers, rates, strict=True):
        result.append(flat[at : at + layer.size].reshape(layer.shape[::-1]).T * rate)
        at += layer.size
    return result


def gradient(layers, inputs, targets):
    """d loss / d parameters by complex step, one array per layer."""
    result = [np.zeros(layer.shape) for layer in layers]
    for n, row, column in columns(layers):
        moved = [layer.astype(complex) for layer in layers]
        moved[n][row, column] += 1j * H
        result[n][row, column] = (((targets - predict(moved, inputs)) ** 2).sum() / 2).imag / H
    return result


def zero_sum(samples, outputs):
    """The orthogonal projector onto fields that sum to zero for each sample."""
    return np.kron(np.eye(samples), np.eye(outputs) - 1.0 / outputs)


def three_port():
    return np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)


def turn_scores(layers, rates, inputs, targets, selected, inverse, alpha=1.0, skew=None):
    """The scores s0 and s1 of the three-port controller.

    `inverse` maps K* to what stands before the mixer.
    """
    x, e = inputs[selected : selected + 1], (targets - predict(layers, inputs))[selected]
    gain = inverse(response(layers, rates, x))
    skew = three_port() if skew is None else skew
    return scores(layers, rates, x, gain @ (alpha * e)), scores(layers, rates, x, gain @ (skew @ e))


def path_derivatives(layers, inputs, score):
    """G and H_V: first and second derivative of the predictions along the exponential path.

    The first derivative at a complex time, by the product rule, and its imaginary part for the
    second.
    """

    def first(eta):
        at = [
            exponential_step(layer.astype(complex), s, eta)
            for layer, s in zip(layers, score, strict=True)
        ]
        moving = [p * (s - (p * s).sum(axis=0)) for p, s in zip(at, score, strict=True)]
        return np.sum(
            [predict([*at[:n], moving[n], *at[n + 1 :]], inputs) for n in range(len(layers))],
            axis=0,
        )

    return first(0.0).real, first(1j * H).imag / H


def coefficient(layers, inputs, targets, score):
    displacement, bending = path_derivatives(layers, inputs, score)
    error = targets - predict(layers, inputs)
    return ((displacement**2).sum() - (error * bending).sum()) / (2 * len(inputs))


def arrays(net):
    """The layers and the rates of a network as plain arrays."""
    return [np.asarray(layer) for layer in net.layers], [np.asarray(rate) for rate in net.rates]


def spectral(matrix, r):
    """r of a symmetric positive semidefinite matrix, mode by mode.

    What round-off left below zero counts as zero.
    """
    values, modes = np.linalg.eigh((matrix + matrix.T) / 2)
    return (modes * r(np.maximum(values, 0.0))) @ modes.T


def score_range(layers, scores):
    """The largest difference of scores within a column, over its positive entries."""
    spans = []
    for layer, score in zip(layers, scores, strict=True):
        for column in range(layer.shape[1]):
            inside = score[layer[:, column] > 0, column]
            spans.append(inside.max() - inside.min())
    return max(spans)


def coupled(layers, rates, inputs, targets, order, turns, policy, scale, omega=1.0, mu=0.1):
    """Two learners, update by update, with explicit loops.

    Returns both ends and the four terms of every update.
    """

    def loss(at):
        return ((targets - predict(at, inputs)) ** 2).sum() / (2 * len(inputs))

    def moved(at, b, r, amount, size):
        return [exponential_step(p, s + amount * t, size) for p, s, t in zip(at, b, r, strict=True)]

    def combined(b, r, amount):
        return [s + amount * t for s, t in zip(b, r, strict=True)]

    def leak(k):
        return np.linalg.inv(k + mu * np.eye(len(k)))

    here, there, rows = list(layers), list(layers), []
    for sample, turn in zip(order, turns, strict=True):
        b, r = turn_scores(here, rates, inputs, targets, sample, leak)
        x, y = inputs[sample : sample + 1], targets[sample : sample + 1]
        g, h = path_derivatives(here, x, r)
        is_open = ((y - predict(here, x)) * h).sum() > (g**2).sum()
        widest = max(
            score_range(here, combined(b, r, omega)), score_range(here, combined(b, r, -omega))
        )
        kept, own = scale / max(1, widest), scale / max(1, score_range(here, b))
        nu = kept if policy == "step-matched" or is_open else own
        amount = omega if is_open else 0.0
        b0, _ = turn_scores(there, rates, inputs, targets, sample, leak)
        after = [
            exponential_step(p, s, scale / max(1, score_range(there, b0)))
            for p, s in zip(there, b0, strict=True)
        ]
        before = loss(here)
        plus, minus, zero = (
            loss(moved(here, b, r, a, nu)) - before for a in (amount, -amount, 0.0)
        )
        native = loss(moved(here, b, r, 0.0, own)) - before
        taken = plus if turn > 0 else minus
        mean = (plus + minus) / 2
        rows.append(
            (mean - zero, taken - mean, zero - native, native - (loss(after) - loss(there)))
        )
        here, there = moved(here, b, r, turn * amount, nu), after
    return here, there, np.array(rows)
