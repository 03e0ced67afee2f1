"""A table to fill in: what to apply, how often, and where to write what was seen."""

import io
from pathlib import Path

import numpy as np

from whorl.ground import store

REPEATS = 12


def template(outputs: int = 3, *, repeats: int = REPEATS) -> str:
    """A CSV table in wide form with a good series of residuals, repeated, and empty velocities.

    Each residual raises one output and lowers all others alike. The series excites every direction
    equally, and twelve repeats of it give the test of reciprocity its full level.

    Examples:
        >>> from whorl import measured
        >>> measured.template(outputs=3).splitlines()[0]
        'repeat,residual_1,residual_2,residual_3,velocity_1,velocity_2,velocity_3'
    """
    for name, value, least in (("outputs", outputs, 2), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(
                f"{name} must be a whole number of at least {least}, but it is {value!r}"
            )
    numbers = range(1, outputs + 1)
    text = io.StringIO()
    text.write(
        ",".join(
            ["repeat", *(f"residual_{k}" for k in numbers), *(f"velocity_{k}" for k in numbers)]
        )
        + "\n"
    )
    for repeat in range(1, repeats + 1):
        for raised in numbers:
            applied = [0.1 if k == raised else -0.1 / (outputs - 1) for k in numbers]
            text.write(
                ",".join([str(repeat), *(f"{value:.6g}" for value in applied), *[""] * outputs])
                + "\n"
            )
    return text.getvalue()


def write_template(path: str | Path, outputs: int = 3) -> None:
    """Write the table to a file. It is there in the end, whole, or not at all.

    Examples:
        >>> from whorl import measured
        >>> measured.write_template(folder / "measurements.csv", outputs=3)
    """
    store.write(Path(path), template(outputs))
