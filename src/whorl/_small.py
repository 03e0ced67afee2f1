"""The inverse of a small positive definite matrix without LAPACK.

Inside compiled loops over many networks a batched LAPACK call is slow, and with some versions of jaxlib it never returns. Sweeping
each pivot once (Gauss and Jordan, in place) is elementwise work; for positive definite matrices it needs no pivoting.
"""

import jax.numpy as jnp
import numpy as np

from whorl.response import Matrix

LARGEST = 8


def inverse(matrix: Matrix) -> Matrix:
    """The inverse of a positive definite matrix, by sweeps up to size 8 and by LAPACK above."""
    size = matrix.shape[0]
    if size > LARGEST:
        return jnp.linalg.inv(matrix)
    for k in range(size):
        here = np.arange(size) == k
        row = jnp.where(here, 1.0, matrix[k]) / matrix[k, k]
        column = jnp.where(here, 0.0, matrix[:, k])
        cleared = jnp.where((here[:, None] | here[None, :]), 0.0, matrix)
        matrix = cleared + jnp.where(here[:, None], row[None, :], -column[:, None] * row[None, :])
    return matrix
