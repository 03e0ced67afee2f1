"""What a study of rules may be asked for."""

from dataclasses import dataclass

from whorl.study.parameters import (
    BETAS,
    DEPTHS,
    Parameters,
    between,
    many,
    parameter,
    several,
    whole,
)

SIZES = several("whole numbers from 8 to 200", whole(8, 200)[1])


@dataclass(frozen=True, kw_only=True)
class Rules(Parameters):
    """The parameters of a study of rules."""

    circuits: int = parameter(whole(2, 100_000), "circuits of every size")
    sizes: list[int] = parameter(SIZES, "numbers of nodes of circuits")
    spread: float = parameter(between(0.01, 3), "of logarithms of conductances")
    nudges: list[float] = parameter(
        many(0.01, 0.5, 2), "stiffness of springs, times the trace of the output impedance"
    )
    families: int = parameter(whole(2, 100_000), "layered networks of every depth and imbalance")
    depths: list[int] = parameter(DEPTHS, "numbers of trainable layers")
    betas: list[float] = parameter(BETAS, "imbalances: factors of the column logits")
    floor: float = parameter(between(1e-9, 1), "share of a column that is spread evenly")
