"""The exponential of a small argument as one polynomial.

The envelope bounds the exponents of a step, so no range need be reduced.
"""

import functools
import math
from fractions import Fraction

from jaxtyping import Array, Float

REACH = (
    1.0  # exponents up to this size; beyond it the difference of cosh and sinh would lose digits
)


@functools.cache
def _coefficients(reach: float) -> tuple[list[float], list[float]]:
    """Even and odd powers of a polynomial for exp on [-reach, reach], good to round-off.

    The Taylor series, economised: its Chebyshev terms above the needed degree are taken off, in
    exact arithmetic.
    """
    size = Fraction(reach)
    degree = next(
        n for n in range(4, 60) if size ** (n + 1) / math.factorial(n + 1) < Fraction(2) ** (n - 55)
    )
    series = [size**k / math.factorial(k) for k in range(degree + 12)]
    chebyshev = [[1], [0, 1]]
    while len(chebyshev) < len(series):
        older, newer = chebyshev[-2:]
        chebyshev.append([2 * c - o for c, o in zip([0, *newer], [*older, 0, 0], strict=True)])
    for n in range(len(series) - 1, degree, -1):
        factor = series[n] / chebyshev[n][n]
        for i, c in enumerate(chebyshev[n]):
            series[i] -= factor * c
    powers = [float(c / size**k) for k, c in enumerate(series[: degree + 1])]
    return powers[0::2], powers[1::2]


def parts(
    argument: Float[Array, "*shape"], reach: float = REACH
) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Cosh and sinh of an argument of at most `reach`.

    Their sum and difference are exp of plus and minus the argument.
    """
    square = argument * argument
    even, odd = (_horner(powers, square) for powers in _coefficients(reach))
    return even, argument * odd


def _horner(powers: list[float], argument: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return functools.reduce(
        lambda value, c: value * argument + c, powers[-3::-1], powers[-1] * argument + powers[-2]
    )
