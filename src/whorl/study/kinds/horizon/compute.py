"""The pairs of the horizon study.

One stage for every depth, policy and step scale; its trials, imbalances and turn replicates are one
call of `train_many`, under one root seed or several. The chunk of a call is the design's, so that
no number depends on which seeds were taken together.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from whorl.feedback import leaky, rotational
from whorl.learning.ensemble import stacked, train_many
from whorl.learning.policy import Policy, adaptive, step_matched
from whorl.study import draws
from whorl.study.kind import Arrays
from whorl.study.parameters import Coupled

POLICIES: dict[str, Callable[..., Policy]] = {"step_matched": step_matched, "adaptive": adaptive}
LOSSES = ("taken", "opposite", "still", "own", "native")
SIDES = ("nonreciprocal", "native")


class Stage(NamedTuple):
    """All pairs of one depth, policy and scale."""

    depth: int
    policy: str
    scale: float

    @property
    def name(self) -> str:
        """As in `depth4-adaptive-0.1`."""
        return f"depth{self.depth}-{self.policy}-{self.scale!r}"


def stages(p: Coupled) -> list[Stage]:
    """Units of work that are kept when a run is interrupted."""
    return [
        Stage(depth, policy, scale)
        for depth in p.depths
        for scale in p.scales
        for policy in POLICIES
    ]


def compute(p: Coupled, stage: Stage) -> Arrays:
    """The pairs of one stage: arrays over trial, imbalance and flip."""
    return many([p], [stage])[0][stage]


def many(each: Sequence[Coupled], stages: Sequence[Stage]) -> list[dict[Stage, Arrays]]:
    """The same under several root seeds, one call per stage; every trial is drawn once."""
    p = each[0]
    x, y, order, turns = (np.concatenate(part) for part in zip(*map(_cases, each), strict=True))
    starts = {depth: _starts(each, depth) for depth in {stage.depth for stage in stages}}
    parts: list[dict[Stage, Arrays]] = [{} for _ in each]
    law = rotational(p.alpha, base=leaky(p.leak))
    for stage in stages:
        layers = starts[stage.depth]
        made = train_many(
            stacked(layers),
            x,
            y,
            policy=POLICIES[stage.policy](stage.scale, omega=p.omega, law=law),
            schedule=order,
            turns=turns,
            record=True,
            chunk=p.chunk,
        )
        if not made.completed.all():
            raise ValueError(
                "every pair must stay in the interior, but "
                f"{int((~made.completed).sum())} of stage {stage.name} did not"
            )
        assert made.updates is not None
        found = {
            name: np.asarray(getattr(made.updates.outcome, name))
            for name in (*LOSSES, "step", "amount")
        }
        found |= {
            f"end_{side}": np.stack([np.asarray(one) for one in getattr(made, side).layers], axis=1)
            for side in SIDES
        }
        found |= {"start": made.start, "layers": layers[::2]}
        split = {name: np.split(values, len(each)) for name, values in found.items()}
        for number, part in enumerate(parts):
            part[stage] = {name: pieces[number] for name, pieces in split.items()}
    return parts


def drawn(p: Coupled) -> tuple[np.ndarray, ...]:
    """Inputs, targets, order and turns of every trial."""
    trials = range(p.trials)
    x, y = draws.tasks(p.seed, p.trials, p.concentration)
    order = np.stack([draws.order(p.seed, trial, p.epochs) for trial in trials])
    turns = np.stack([draws.turns(p.seed, trial, order.shape[1]) for trial in trials])
    return x, y, order, turns


def _cases(p: Coupled) -> list[np.ndarray]:
    """The same over trial, imbalance and flip, which reverses all turns."""
    x, y, order, turns = (np.repeat(part, 2 * len(p.betas), axis=0) for part in drawn(p))
    return [x, y, order, turns * np.tile([1, -1], len(turns) // 2)[:, None]]


def _starts(each: Sequence[Coupled], depth: int) -> np.ndarray:
    """The networks of all seeds, over trial, imbalance and flip."""
    layers = [draws.softmax_networks(p.seed, p.trials, depth, p.betas, p.floor) for p in each]
    return np.repeat(np.concatenate(layers), 2, axis=0)
