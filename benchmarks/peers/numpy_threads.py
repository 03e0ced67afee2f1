"""The vectorised NumPy program on every core.

The pairs dealt out to threads, as far as the interpreter lets them run together.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from peers import numpy_vectorised


def run(*arrays, **named):
    workers = os.cpu_count() or 1
    parts = zip(
        *(np.array_split(array, workers) for array in (*arrays, *named.values())), strict=True
    )
    with ThreadPoolExecutor(workers) as pool:
        ledgers, *ends = zip(
            *pool.map(lambda part: numpy_vectorised.run(*part), parts), strict=True
        )
    return np.concatenate(ledgers, axis=1), *(np.concatenate(end) for end in ends)
