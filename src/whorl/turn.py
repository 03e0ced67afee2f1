r"""The skew matrices $C$ that turn a residual without changing its size or its mass (Eq. 18).

A residual lives in the directions that its system can reach. For systems that conserve mass a
single residual with $n$ outputs has the $n - 1$ zero-sum directions, and a quarter turn
pairs directions two by two. With three outputs there is one pair: the paper's $C$. With any odd
number all directions are paired and $C^2 = -P$. With an even number one direction has no partner
and must stay unturned, whatever $C$: here it is the alternating one. Two outputs leave nothing to
turn with, except across samples.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from whorl import _check
from whorl.fields import whole
from whorl.response import Response
from whorl.system import Fields, Matrix, System


def quarter_turn(outputs: int) -> Float[np.ndarray, "out out"]:
    r"""The skew circulant $C$ that turns every pair of Fourier modes over the outputs by a right
    angle.

    For three outputs this is the matrix of Eq. 18. For an even number the alternating mode $(1, -1,
    1, \dots)$ is left unturned: $C^2 = -P$ holds off that one direction, and no skew matrix does
    better.

    Args:
        outputs: Number of outputs.

    Returns:
        A skew matrix, `(out, out)`.

    Examples:
        >>> C = wh.quarter_turn(3)
        >>> bool(np.allclose(C.T, -C)), bool(np.allclose(C @ C, 1 / 3 - np.eye(3)))
        (True, True)
    """
    if not whole(outputs) or outputs < 3:
        raise ValueError(
            "outputs must be a whole number of at least 3 for a turn within one sample, but it is "
            f"{_check.shown(outputs)}"
        )
    outputs = _check.count("outputs", outputs, 3)
    # One row of the circulant: the sum of sin(k theta) over all pairs of modes k, in closed form.
    # It is odd, so half of it tells all.
    lags = np.arange(1, (outputs + 1) // 2)
    theta = 2.0 * np.pi * lags / outputs
    half = (np.cos(theta / 2) - np.cos(((outputs + 1) // 2 - 0.5) * theta)) / (
        outputs * np.sin(theta / 2)
    )
    row = np.zeros(outputs)
    row[lags], row[outputs - lags] = half, -half
    return row[np.subtract.outer(np.arange(outputs), np.arange(outputs)) % outputs]


def sample_turn(samples: int, outputs: int | System) -> Float[np.ndarray, "n n"]:
    """A skew matrix that turns samples into each other, the first into the second, the third into
    the fourth, and so on.

    It gives a rotation to networks with as few as two outputs. With an odd number of samples the
    last one is left unturned.

    Args:
        samples: Number of samples.
        outputs: Number of outputs of each, which sum to one; or the system, which says itself what
            its outputs can reach.

    Returns:
        A skew matrix, `(samples * out, samples * out)`.

    Examples:
        >>> wh.sample_turn(samples=2, outputs=2).shape
        (4, 4)
    """
    samples = _check.count("samples", samples, 2)
    if isinstance(outputs, System):
        basis = outputs.basis()
        return np.kron(paired(samples), basis @ basis.T)
    outputs = _check.count("outputs", outputs, 2)
    return np.kron(paired(samples), np.eye(outputs) - 1.0 / outputs)


def paired(outputs: int) -> Float[np.ndarray, "out out"]:
    """The skew matrix that turns the first output into the second, the third into the fourth, and
    so on.

    For systems that conserve nothing, whose outputs move freely. With an odd number the last one is
    left unturned.
    """
    matrix = np.zeros((outputs, outputs))
    first = np.arange(0, outputs - 1, 2)
    matrix[first + 1, first], matrix[first, first + 1] = 1.0, -1.0
    return matrix


def turned(response: Response, skew: Array | None, field: Fields) -> Fields:
    """The field turned by the default, by a matrix over outputs, or by one over all fields."""
    matrix = checked_skew(response, skew)
    if matrix.shape[0] == response.outputs:
        return field @ matrix.T
    return (matrix @ field.ravel()).reshape(field.shape)


def joint_skew(response: Response, skew: Array | None) -> Matrix:
    """The skew matrix over all samples in the coordinates of the fields."""
    samples, outputs = response.samples, response.outputs
    matrix = checked_skew(response, skew)
    whole = (
        jnp.kron(jnp.eye(samples, dtype=matrix.dtype), matrix)
        if matrix.shape[0] == outputs
        else matrix
    )
    basis = jnp.asarray(np.kron(np.eye(samples), response.system.basis()), dtype=matrix.dtype)
    return basis.T @ whole @ basis


def checked_skew(response: Response, skew: Array | None) -> Matrix:
    """The user's skew matrix, over outputs or over all fields, or the default over outputs."""
    if skew is None:
        return jnp.asarray(default_turn(response.system), dtype=response.system.dtype)
    given = skew.astype(response.system.dtype)
    _check_skew(given, response)
    return given


def default_turn(system: System) -> Float[np.ndarray, "out out"]:
    """The default turn of one sample's residual: the quarter turn of outputs that conserve mass,
    and pairs of directions for all others.
    """
    basis = system.basis()
    outputs, directions = basis.shape
    if directions < 2:
        least = "3 outputs" if zero_sum(basis) else "2 outputs that move by themselves"
        raise ValueError(
            f"the rotational law must have at least {least} to turn one sample, but there are "
            f"{outputs}: give skew=sample_turn(samples, outputs) to mix samples"
        )
    if zero_sum(basis):
        return quarter_turn(outputs)
    return paired(outputs) if directions == outputs else basis @ paired(directions) @ basis.T


def zero_sum(basis: Float[np.ndarray, "out e"]) -> bool:
    """Whether a system's outputs reach the zero-sum directions, all of them and nothing else."""
    outputs, directions = basis.shape
    slack = 64 * np.finfo(float).eps * outputs
    return bool(directions == outputs - 1 and np.abs(basis.sum(axis=0)).max(initial=0) <= slack)


def _check_skew(skew: Array, response: Response) -> None:
    samples, outputs = response.samples, response.outputs
    sizes = (outputs, samples * outputs)
    if skew.shape[0] != skew.shape[1] or skew.shape[0] not in sizes:
        raise ValueError(
            f"skew must be square of size {outputs} or {samples * outputs}, but its shape is "
            f"{skew.shape}"
        )
    if not _check.known(skew):
        return
    matrix = np.asarray(skew)
    size = np.abs(matrix).max()
    if size == 0:
        raise ValueError("skew must turn something, but all its entries are 0")
    slack = 64 * np.finfo(matrix.dtype).eps * size
    if (worst := np.abs(matrix + matrix.T).max()) > slack:
        raise ValueError(
            f"skew must be antisymmetric, but it differs from minus its transpose by {worst:.3g}"
        )
    basis = response.system.basis()
    if basis.shape[1] == outputs:
        return
    rows = matrix.reshape(len(matrix), -1, outputs)
    # A skew matrix that annihilates what no motion reaches also stays within what can be reached.
    leak = (
        np.abs(rows.sum(axis=2)).max()
        if zero_sum(basis)
        else np.abs(rows - rows @ basis @ basis.T).max()
    )
    if leak > outputs * slack:
        raise ValueError(
            f"skew must conserve the mass of each sample, but a row sums to {leak:.3g} over a "
            "sample's outputs"
            if zero_sum(basis)
            else "skew must stay within the directions that the outputs can reach, but it leads "
            f"{leak:.3g} out of them"
        )
