"""Expected values of columns and statistics, and their tolerances.

- drawn: 1e-12 of the value. The numbers are redrawn; a softmax or a sum may differ in its last bits
  between machines.
- computed: 1e-11 of the natural size of the quantity (its own, or that of the vector it is a
  component of): two digits above the largest difference from the registered runs, and five below
  the smallest change that must be found.
- what a solve gives: the same times 1 + g / 1000, where the solve amplifies a residual at most g
  times (1 / leak, or 1 / smallest eigenvalue of K*): its round-off enters so often. In the
  registered designs g stays below 400.
- condition numbers: round-off of a singular value is relative to the largest, so that digits are
  lost with the root of the condition.
- derived: the same number, since a formula is repeated in the order of operations that it gives,
  except where only the order of a long sum is open: there, and in statistics, 1e-12 of the terms.

A tolerance may be larger than the bound of a gate on what two computed columns leave of an
identity. Such statistics are therefore judged by themselves: `values.roundoff` compares them with
what our own columns leave, and every gate must hold for our own numbers too.
"""

import numpy as np

from whorl_audit.types import Array, Columns, Expected, Tables

DRAWN = 1e-12
COMPUTED = 1e-11
CONDITION = 1e-13  # times the root of the condition number
SUMMATION = 1e-12
ROUNDING = 2.0**-53  # the largest relative error of one rounding


def drawn(values: Array) -> Expected:
    """A column that is drawn again."""
    return Expected(values.ravel(), DRAWN)


def computed(values: Array, scale: Array | None = None) -> Expected:
    """A computed column, to be measured by `scale`, which is broadcast over the rows."""
    return Expected(
        values.ravel(),
        COMPUTED,
        None if scale is None else np.broadcast_to(scale, values.shape).ravel(),
    )


def whole(values: Array) -> Expected:
    """A column of whole numbers, counts, or truths as 0 and 1."""
    return Expected(values.ravel().astype(np.int64))


def condition(values: Array) -> Expected:
    """A column of condition numbers."""
    return Expected(values.ravel(), CONDITION, (values * np.sqrt(values)).ravel())


def loss(values: Array, stretch: Array | float = 1.0) -> Expected:
    """A column of losses.

    An error of the outputs enters times the residual, so that small losses keep fewer digits.
    """
    return computed(values, loss_size(values) * stretch)


def loss_size(values: Array) -> Array:
    """What errors of losses are measured by."""
    return values + 1e-2 * np.sqrt(np.abs(values))


def stretched(gain: Array | float) -> Array:
    """How much the tolerance widens behind a solve that amplifies a residual by `gain`.

    Little below a thousand.
    """
    return 1 + np.asarray(gain) / 1e3


def components(
    name: str, vectors: Array, stretch: Array | float = 1.0, least: Array | float = 0.0
) -> Columns:
    """The three components of vectors `(..., 3)`, measured by the length of the vector.

    `least` is added to the length, for vectors that are small differences of large numbers.
    """
    length = np.linalg.norm(vectors, axis=-1) * stretch + least
    return {f"{name}_{k}": computed(vectors[..., k], length) for k in range(3)}


def cancelled(depth: Array | int) -> Array:
    """What is added to the size of a residual, so that its tolerance covers what cancels in it.

    A residual is the difference of two numbers of at most one, of which a network of `depth` layers
    makes the one by sums of three products of numbers that are not negative: three roundings a
    layer, three for the target and one for the difference, in each of two programs, however small
    the difference is.
    """
    return 2 * (3 * np.asarray(depth) + 4) * ROUNDING / COMPUTED


def task_columns(inputs: Array, targets: Array) -> Columns:
    """The table `tasks`."""
    return {
        f"{name}_{k}": drawn(values[..., k])
        for name, values in (("x", inputs), ("y", targets))
        for k in range(3)
    }


def same(values: Array) -> Expected:
    """A column that must hold these numbers and no others."""
    return Expected(values)


def summed(values: Array, scale: Array | None = None) -> Expected:
    """A column whose order of summation is open."""
    return Expected(values, SUMMATION, scale)


def number(value: float, scale: float | None = None) -> Expected:
    """A statistic, in any order of summation.

    `scale` is the size of the terms where they may cancel.
    """
    return summed(np.asarray(value, float), None if scale is None else np.asarray(scale, float))


def numbers(values: dict[str, float]) -> dict[str, Expected]:
    """Statistics that are measured by their own size."""
    return {name: number(value) for name, value in values.items()}


def rows(tables: Tables, *names: str) -> dict[str, Expected]:
    """The numbers of rows."""
    return numbers({f"rows.{name}": len(next(iter(tables[name].values()))) for name in names})


def largest(tables: Tables, table: str, *columns: str) -> dict[str, Expected]:
    """The largest values of columns."""
    return numbers({f"{column}.max": tables[table][column].max() for column in columns})


def interval(name: str, values: Array, scale: float | None = None) -> dict[str, Expected]:
    """The central 95 % of resampled values."""
    lower, upper = np.quantile(values, [0.025, 0.975])
    return {f"{name}.lower": number(lower, scale), f"{name}.upper": number(upper, scale)}
