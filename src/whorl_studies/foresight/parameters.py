"""What a foresight study may be asked for."""

from dataclasses import dataclass

from whorl.study.parameters import Coupled, Limit, finite, many, parameter, several, whole

HORIZONS = several("whole numbers from -1 to 1000000", whole(-1, 1_000_000)[1])
FRACTIONS: Limit = (
    "three different numbers from 0 to 1 of which the first is 1",
    lambda value: (
        isinstance(value, list)
        and len(value) == len(set(value)) == 3
        and value[0] == 1
        and all(finite(one) and 0 <= one <= 1 for one in value)
    ),
)


@dataclass(frozen=True, kw_only=True)
class Foresight(Coupled):
    """The parameters of a foresight study."""

    horizons: list[int] = parameter(HORIZONS, "native updates looked ahead; -1: to the end")
    halves: list[float] = parameter(FRACTIONS, "steps that the arm `halves` chooses from")
    quarters: list[float] = parameter(FRACTIONS, "steps that the arm `quarters` chooses from")
    robust_horizons: list[int] = parameter(HORIZONS, "horizons of all other arms")
    noises: list[float] = parameter(many(1e-6, 10), "relative errors of losses that are read")
    omegas: list[float] = parameter(many(1e-3, 1e3), "amounts of turning besides omega")
    deep: int = parameter(whole(1, 64), "layers of the arm `deep`")
    wide: int = parameter(whole(4, 9), "width of the arm `wide`")
    wide_trials: int = parameter(whole(2, 100_000), "trials of the arm `wide`")
