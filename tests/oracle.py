"""The second route: the paper's formulas in plain NumPy, with no line of the library in them.

Slow, explicit and complex-valued where a derivative is wanted: the imaginary part of f(x + ih) / h is the derivative of an analytic
f to the last bit, with no difference to cancel. Layers are lists of arrays `(out, in)`, inputs rows `(samples, in)`.
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


def columns(layers):
    """Every parameter as (layer, row, column), column after column."""
    return [(n, row, column) for n, layer in enumerate(layers) for column in range(layer.shape[1]) for row in range(layer.shape[0])]


def jacobian(layers, inputs):
    """d predictions / d parameters by complex step, `(samples * out, parameters)`."""
    rows = []
    for n, row, column in columns(layers):
        moved = [layer.astype(complex) for layer in layers]
        moved[n][row, column] += 1j * H
        rows.append(predict(moved, inputs).imag.ravel() / H)
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


def logit_response(layers, rates, inputs):
    """The response through logit coordinates: J_z diag(rho / p) J_z^T, where the columns are softmax(z) on their support."""
    rows, weights = [], []
    for n, row, column in columns(layers):
        if layers[n][row, column] == 0:
            continue
        kick = np.zeros(layers[n].shape, dtype=complex)
        kick[row, column] = 1j * H
        moved = [layer.astype(complex) for layer in layers]
        moved[n] = exponential_step(moved[n], kick, 1.0)
        rows.append(predict(moved, inputs).imag.ravel() / H)
        weights.append(rates[n][column] / layers[n][row, column])
    jac = np.array(rows).T
    return (jac * np.array(weights)) @ jac.T


def scores(layers, rates, inputs, potential):
    """rho J^T v, reshaped to one array a layer."""
    flat, result, at = jacobian(layers, inputs).T @ np.asarray(potential).ravel(), [], 0
    for layer, rate in zip(layers, rates, strict=True):
        result.append(flat[at : at + layer.size].reshape(layer.shape[::-1]).T * rate)
        at += layer.size
    return result


def gradient(layers, inputs, targets):
    """d loss / d parameters by complex step, one array a layer."""
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
    """The scores s0 and s1 of the three-port controller; `inverse` maps K* to what stands before the mixer."""
    x, e = inputs[selected : selected + 1], (targets - predict(layers, inputs))[selected]
    gain = inverse(response(layers, rates, x))
    skew = three_port() if skew is None else skew
    return scores(layers, rates, x, gain @ (alpha * e)), scores(layers, rates, x, gain @ (skew @ e))


def path_derivatives(layers, inputs, score):
    """G and H_V: first and second derivative of the predictions along the exponential path.

    The first derivative at a complex time, by the product rule, and its imaginary part for the second.
    """

    def first(eta):
        at = [exponential_step(layer.astype(complex), s, eta) for layer, s in zip(layers, score, strict=True)]
        moving = [p * (s - (p * s).sum(axis=0)) for p, s in zip(at, score, strict=True)]
        total = 0
        for n in range(len(layers)):
            total = total + predict([*at[:n], moving[n], *at[n + 1 :]], inputs)
        return total

    return first(0.0).real, first(1j * H).imag / H


def coefficient(layers, inputs, targets, score):
    displacement, bending = path_derivatives(layers, inputs, score)
    error = targets - predict(layers, inputs)
    return ((displacement**2).sum() - (error * bending).sum()) / (2 * len(inputs))
