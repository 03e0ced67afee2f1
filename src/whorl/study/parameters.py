"""The parameters of studies: typed fields, each with the rule for its value and a line of help.

A kind of study has one frozen class of parameters. The reader of designs, the audit's tests, the
estimate of costs and the pages read the rules from its fields.
"""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from whorl.ground.rules import BETAS as BETAS
from whorl.ground.rules import CHUNK as CHUNK
from whorl.ground.rules import DEPTHS as DEPTHS
from whorl.ground.rules import LEAK as LEAK
from whorl.ground.rules import RANK_TOL as RANK_TOL
from whorl.ground.rules import SCALES as SCALES
from whorl.ground.rules import SEED as SEED
from whorl.ground.rules import SPREAD as SPREAD
from whorl.ground.rules import Limit as Limit
from whorl.ground.rules import between as between
from whorl.ground.rules import finite as finite
from whorl.ground.rules import many as many
from whorl.ground.rules import only as only
from whorl.ground.rules import several as several
from whorl.ground.rules import whole as whole

Fault = tuple[str, str, Any]  # the parameter, the rule that it breaks, and its value


def parameter(rule: Limit, words: str) -> Any:
    """A field of `Parameters`: the rule for its value, and what it means in one line."""
    return field(metadata={"rule": rule, "help": words})


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What every study has; a kind adds its own fields in a subclass.

    Examples:
        >>> from whorl.study.parameters import Parameters
        >>> Parameters(seed=7).seed, list(Parameters.rules())
        (7, ['seed'])
    """

    seed: int = parameter(SEED, "root seed of every random number but the bootstrap's")

    @classmethod
    def rules(cls) -> dict[str, Limit]:
        """The rule of every parameter, in the order of the fields."""
        return {one.name: one.metadata["rule"] for one in fields(cls)}

    @classmethod
    def helps(cls) -> dict[str, str]:
        """What every parameter means, in one line."""
        return {one.name: one.metadata["help"] for one in fields(cls)}

    def together(self) -> Fault | None:
        """What is wrong where parameters that are good one by one do not fit together."""
        return None


@dataclass(frozen=True, kw_only=True)
class Common(Parameters):
    """What the studies of small networks share."""

    depths: list[int] = parameter(DEPTHS, "numbers of trainable layers")
    width: int = parameter(only(3), "nodes of a layer")
    mixtures: int = parameter(only(3), "samples of a task besides the vertices")
    concentration: float = parameter(SPREAD, "of the Dirichlet distribution of a teacher's rows")
    floor: float = parameter(between(1e-9, 1), "share of a column that is spread evenly")


@dataclass(frozen=True, kw_only=True)
class Coupled(Common):
    """What the studies of coupled pairs share."""

    bootstrap_seed: int = parameter(SEED, "root seed of the bootstrap")
    trials: int = parameter(whole(2, 100_000), "tasks, each with its own networks and schedule")
    betas: list[float] = parameter(BETAS, "imbalances: factors of the column logits")
    scales: list[float] = parameter(SCALES, "numerators of the step envelope")
    epochs: int = parameter(whole(1, 1_000_000), "passes over the six samples")
    leak: float = parameter(LEAK, "of the leaky law")
    alpha: float = parameter(only(1.0), "rate of repair")
    omega: float = parameter(between(1e-3, 1e3), "amount of turning")
    resamples: int = parameter(whole(1, 1_000_000), "resamples of a bootstrap")
    chunk: int = parameter(CHUNK, "pairs of one compiled call")

    @property
    def updates(self) -> int:
        """Updates of a trajectory: every epoch shows three vertices and three mixtures."""
        return 6 * self.epochs

    @property
    def conditions(self) -> dict[str, Any]:
        """The keys of a condition and their values."""
        betas, scales = (np.asarray(values, dtype=float) for values in (self.betas, self.scales))
        return {"depth": self.depths, "beta": betas, "scale": scales}

    @property
    def chunk_bytes(self) -> int:
        """Memory of one compiled call."""
        return 400 * self.chunk * self.updates + 4000 * self.chunk * max(self.depths)
