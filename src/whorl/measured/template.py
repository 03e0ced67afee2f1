"""Templates for measurements: the residuals to apply in a balanced order.

Each residual raises or lowers one output against all others. A repeat begins with a centre point,
where nothing is applied, and then applies one residual per output. Two repeats have the same order,
once forwards and once backwards, so that neither a drift nor a memory of the row before is skew;
the next two begin elsewhere in a sequence in which every residual follows every other one
(Williams, 1949), with the opposite sign, so that what bends is not taken for an offset.
"""

import io
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from whorl import _check
from whorl.ground import store

REPEATS = 12
SIZE = 0.1


def balanced(
    outputs: int = 3, *, repeats: int = REPEATS
) -> tuple[Float[np.ndarray, "rows outputs"], Int[np.ndarray, "rows"]]:
    """Residuals in an order balanced against drift and memory, and the repeat of each row.

    Args:
        outputs: number of outputs, at least 2.
        repeats: number of repeats, at least 2 and even.

    Returns:
        The residuals, `repeats * (outputs + 1)` rows, and the number of the repeat from 1 on.

    Examples:
        >>> from whorl import measured
        >>> residuals, repeat = measured.balanced(3, repeats=2)
        >>> print(residuals[:4])
        [[ 0.    0.    0.  ]
         [ 0.1  -0.05 -0.05]
         [-0.05  0.1  -0.05]
         [-0.05 -0.05  0.1 ]]
    """
    _check.count("outputs", outputs, 2)
    _check.count("repeats", repeats, 2)
    if repeats % 2:
        raise ValueError(f"repeats must be even, but it is {repeats}")
    raised = SIZE * (np.eye(outputs) * outputs - 1) / (outputs - 1)
    steps = np.cumsum([(-1) ** (k + 1) * k for k in range(outputs)])  # 0, 1, -1, 2, -2 ...
    rows, runs = [], []
    for repeat in range(repeats):
        order = (steps + repeat // 2) % outputs
        sign = 1 - 2 * (repeat // 2 % 2)
        series = sign * raised[order[:: 1 - 2 * (repeat % 2)]]
        rows += [np.zeros((1, outputs)), series]
        runs += [repeat + 1] * (outputs + 1)
    return np.concatenate(rows) + 0.0, np.array(runs)


def template(outputs: int = 3, *, repeats: int = REPEATS) -> str:
    """A CSV table in wide form with residuals in a balanced order, and empty velocities.

    Args:
        outputs: Number of outputs, at least 2.
        repeats: Number of repeats, at least 2 and even.

    Returns:
        The table as text.

    Examples:
        >>> from whorl import measured
        >>> measured.template(outputs=3).splitlines()[0]
        'repeat,residual_1,residual_2,residual_3,velocity_1,velocity_2,velocity_3'
    """
    residuals, runs = balanced(outputs, repeats=repeats)
    numbers = range(1, outputs + 1)
    text = io.StringIO()
    names = [*(f"residual_{k}" for k in numbers), *(f"velocity_{k}" for k in numbers)]
    text.write(",".join(["repeat", *names]) + "\n")
    for run, applied in zip(runs, residuals, strict=True):
        cells = [str(run), *(f"{value:.6g}" for value in applied), *[""] * outputs]
        text.write(",".join(cells) + "\n")
    return text.getvalue()


def write_template(path: str | Path, outputs: int = 3, *, repeats: int = REPEATS) -> None:
    """Write the table to a file. It is there in the end, whole, or not at all.

    Args:
        path: The file.
        outputs: Number of outputs, at least 2.
        repeats: Number of repeats, at least 2 and even.

    Examples:
        >>> from whorl import measured
        >>> measured.write_template(folder / "measurements.csv", outputs=3)
    """
    store.write(Path(path), template(outputs, repeats=repeats))
