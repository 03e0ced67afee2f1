"""The C anchor: compiles `c_lanes.c` for each depth into a temporary folder.

The number of pairs must be a multiple of eight.
"""

import ctypes
import functools
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

from peers.numpy_reduced import compress
from peers.problem import LEAK, SCALE, lanes_last, pairs_first

if shutil.which("cc") is None:
    raise ImportError("no C compiler is called cc here")

SOURCE = pathlib.Path(__file__).with_suffix(".c")
FLAGS = ["-O3", "-march=native", "-fopenmp", "-ffast-math", "-shared", "-fPIC"]


@functools.cache
def library(depth):
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / f"lanes{depth}.so"
        subprocess.run(
            [
                "cc",
                *FLAGS,
                f"-DL={depth}",
                f"-DLEAK={LEAK}",
                f"-DSCALE={SCALE}",
                SOURCE,
                "-o",
                target,
                "-lm",
            ],
            check=True,
        )
        return ctypes.CDLL(str(target))


def run(layers, inputs, targets, schedule, turns):
    arrays = lanes_last(layers, inputs, targets, schedule, turns)
    rotated = [np.ascontiguousarray(samples) for samples in compress(arrays[1], arrays[2])]
    updates, lanes = arrays[3].shape
    results = np.empty((updates, 4, lanes)), np.empty_like(arrays[0]), np.empty_like(arrays[0])
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (*arrays, *rotated, *results)]
    library(len(arrays[0])).run(ctypes.c_long(lanes), ctypes.c_long(updates), *pointers)
    return pairs_first(*results)
