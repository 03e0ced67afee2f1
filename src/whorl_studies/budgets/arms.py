"""The arms of the budgets study: who learns, with what trouble, and in which setting.

*Selected*: six samples, one shown at a time in a fresh order every epoch. *Joint*: the three
vertices, all shown at every update. *Wide*: as selected, with more outputs.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from whorl.study import draws, frames
from whorl.study.compute import fused
from whorl.study.frames import Table
from whorl.study.kind import Arrays
from whorl_studies.budgets import draws as own
from whorl_studies.budgets import learners
from whorl_studies.budgets.learners import CYCLE, LINEAR, MODES, Lanes, Shape
from whorl_studies.budgets.parameters import Budgets

SAMPLES = 6
LEAST = 1e-8  # the leak of repair: a response that is not regular cannot be repaired
TOGETHER = {"selected": 1, "joint": 3, "wide": 1}


class Arm(NamedTuple):
    """A learner."""

    name: str
    act: str = "scalar"
    sense: str = "constant"  # or random
    momentum: bool = False
    ahead: bool = False
    cycle: bool = False
    leaks: bool = False  # by the inverse of its gain
    free: bool = False  # of the bound on the gain: its leak is next to nothing
    kept: bool = False  # whether its turns keep a least cosine
    trouble: str = "none"  # error, late, noise or flips
    level: float = 0.0


class Stage(NamedTuple):
    """Some arms of one setting at one depth, which share a compiled program."""

    setting: str
    family: str  # linear, modes, or robust followed by one of them
    depth: int

    @property
    def name(self) -> str:
        """As in `joint-modes-depth2`."""
        return f"{self.setting}-{self.family}-depth{self.depth}"


PLAIN = (
    Arm("direct"),
    Arm("leaky", act="leaky", leaks=True),
    Arm("random", act="random"),
    Arm("heavy", momentum=True),
    Arm("nesterov", momentum=True, ahead=True),
    Arm("chebyshev", cycle=True),
    Arm("repair", act="leaky", leaks=True, free=True),
)
CRITICAL = (Arm("critical", act="critical"), Arm("critical_random", act="critical", sense="random"))
TURNING = (
    Arm("paired", act="paired"),
    Arm("kept", act="paired", kept=True),
    Arm("geometric", act="geometric"),
    Arm("paired_random", act="paired", sense="random"),
    Arm("geometric_random", act="geometric", sense="random"),
)
# The laws that turn, in each setting: what the study asks about.
LAWS = {"selected": ("critical",), "joint": ("paired", "kept", "geometric")}
RIVALS = ("direct", "leaky", "random", "heavy", "nesterov", "chebyshev", "repair")


def main(setting: str) -> tuple[Arm, ...]:
    """The arms of a setting, in the order of the tables."""
    return (*PLAIN, *(CRITICAL if setting == "selected" else TURNING))


def troubled(p: Budgets, setting: str) -> tuple[Arm, ...]:
    """The arms that ask for robustness, in the order of the tables."""
    direct = Arm("direct")
    if setting == "wide":
        return direct, Arm("geometric", act="geometric")
    noises = [("noise", level) for level in p.noises]
    levels = [("error", level) for level in p.errors]
    levels += [("late", float(level)) for level in p.delays] + noises
    flips = [("flips", level) for level in p.flips]
    turning = CRITICAL[:1] if setting == "selected" else (TURNING[0], TURNING[2])
    every = [("none", 0.0), *levels, *flips]
    return (
        *(direct._replace(trouble=name, level=level) for name, level in [("none", 0.0), *noises]),
        *(arm._replace(trouble=name, level=level) for arm in turning for name, level in every),
    )


def stages(p: Budgets) -> list[Stage]:
    """Units of work, the longest first."""
    found = [Stage("joint", "modes", depth) for depth in p.depths]
    found += [Stage("joint", "robust_modes", depth) for depth in p.robust_depths]
    found += [Stage("selected", "linear", depth) for depth in p.depths]
    found += [Stage("joint", "linear", depth) for depth in p.depths]
    found += [Stage("selected", "robust_linear", depth) for depth in p.robust_depths]
    found += [Stage("joint", "robust_linear", depth) for depth in p.robust_depths]
    wide = [
        Stage("wide", family, p.robust_depths[0]) for family in ("robust_linear", "robust_modes")
    ]
    return [*found, *wide]


def of(p: Budgets, stage: Stage) -> list[Arm]:
    """The arms of a stage."""
    robust, family = stage.family.startswith("robust"), stage.family.rpartition("_")[2]
    every = troubled(p, stage.setting) if robust else main(stage.setting)
    return [arm for arm in every if (arm.act in MODES) == (family == "modes")]


def marks(p: Budgets, stage: Stage) -> list[int]:
    """The updates after which losses are read."""
    if stage.family.startswith("robust"):
        return p.robust_updates
    return p.updates if stage.setting == "selected" else p.joint_updates


def compute_factor(setting: str) -> int:
    """Updates of the direct law for one of a law that needs the response.

    One way forward and back; and another for each of its directions.
    """
    return 1 + 2 * TOGETHER[setting]


def places(p: Budgets, stage: Stage) -> Table:
    """The conditions and trials of a stage, trials varying fastest."""
    robust = stage.family.startswith("robust")
    betas = [p.robust_beta] if robust else p.betas
    gains = [p.robust_gain] if robust else p.gains
    return frames.product(
        beta=frames.floats(betas), gain=frames.floats(gains), trial=range(p.trials)
    )


def compute(p: Budgets, stage: Stage) -> Arrays:
    """Losses and efforts at the marks, (arms, marks, rows), and what equal compute and equal
    effort give the direct law, (laws, marks, rows).
    """
    here = _Run(p, stage)
    arms = of(p, stage)
    losses, efforts, _, smallest = here.run(arms, marks(p, stage))
    found = {"loss": losses, "effort": efforts, "smallest": smallest}
    if stage.family in ("linear", "modes"):
        laws = [n for n, arm in enumerate(arms) if arm.name in LAWS[stage.setting]]
        if laws:
            found |= here.equal(marks(p, stage), efforts[laws])
    return found


class _Run:
    """One stage: networks, data, and the lanes of its arms."""

    def __init__(self, p: Budgets, stage: Stage) -> None:
        self.p, self.stage, self.rows = p, stage, places(p, stage)
        self.together = TOGETHER[stage.setting]
        self.width = p.wide if stage.setting == "wide" else 3
        self.size = self.together * (self.width - 1)

    def equal(self, marks: list[int], efforts: np.ndarray) -> Arrays:
        """The direct law with the compute, and with the efforts (laws, marks, rows), of others."""
        many = [min(compute_factor(self.stage.setting) * mark, marks[-1]) for mark in marks]
        every = sorted(set(many))
        laws, count, rows = efforts.shape
        losses, _, kept, _ = self.run(PLAIN[:1], every, efforts.reshape(laws * count, rows))
        return {
            "compute": np.stack([losses[0][every.index(one)] for one in many]),
            "effort_equal": kept[0].reshape(laws, count, rows),
        }

    def run(
        self, arms: Sequence[Arm], marks: list[int], spent: np.ndarray | None = None
    ) -> tuple[np.ndarray, ...]:
        """Losses and efforts (arms, marks, rows), kept losses, and smallest weights."""
        count, last = len(self.rows["trial"]), marks[-1]
        lanes = self._lanes(arms)
        shape = Shape(
            self.together,
            MODES if arms[0].act in MODES else LINEAR,
            max([int(arm.level) for arm in arms if arm.trouble == "late"], default=0),
            any(arm.trouble == "noise" for arm in arms),
            0 if spent is None else len(spent),
        )
        work = learners.program(shape)
        trials = np.tile(self.rows["trial"], len(arms))
        layers = np.tile(self._layers(), (1, 1, 1, len(arms)))
        x, y, order = self._data(last)
        thresholds = np.zeros((0, count)) if spent is None else spent
        thresholds = np.tile(thresholds, (1, len(arms)))
        numbers = jnp.asarray(marks)

        def call(first: int, end: int) -> Any:
            at = np.arange(first, end) % len(trials)  # the last chunk is filled from the beginning
            who = trials[at]
            data = (
                np.moveaxis(x[who], 0, -1),
                np.moveaxis(y[who], 0, -1),
                order[who].T,
                self._senses(arms, at // count, who, last).T,
                self._noise(shape, who, last),
                thresholds[:, at],
            )
            cut = Lanes(*(part[..., at] for part in lanes))
            return work(layers[..., at], cut, tuple(map(jnp.asarray, data)), numbers)

        found = _chunked(call, len(trials), self.p.chunk)
        shaped = [part.reshape(*part.shape[:-1], len(arms), count) for part in found]
        return tuple(np.moveaxis(part, -2, 0) for part in shaped)

    def _lanes(self, arms: Sequence[Arm]) -> Lanes:
        p, rows = self.p, self.rows
        count = len(rows["trial"])

        def each(value: Callable[[Arm], Any]) -> np.ndarray:
            return np.concatenate([np.broadcast_to(value(arm), count) for arm in arms])

        def matrices(value: Callable[[Arm], np.ndarray]) -> np.ndarray:
            return np.concatenate([np.moveaxis(value(arm), 0, -1) for arm in arms], axis=-1)

        eye, trials = np.eye(self.size), rows["trial"]
        stretch = np.stack([own.error(p.seed, t, self.size) for t in range(p.trials)])[trials]
        random = np.stack([own.orthogonal(p.seed, t, self.size) for t in range(p.trials)])[trials]
        steps = self._chebyshev() if any(arm.cycle for arm in arms) else np.ones((CYCLE, count))
        names = MODES if arms[0].act in MODES else LINEAR
        return Lanes(
            each(lambda arm: p.scale),
            each(lambda arm: names.index(arm.act)),
            each(lambda arm: rows["gain"]),
            np.concatenate([steps if arm.cycle else np.ones_like(steps) for arm in arms], axis=-1),
            each(lambda arm: p.momentum if arm.momentum else 0.0),
            each(lambda arm: float(arm.ahead)),
            each(lambda arm: LEAST if arm.free else 1 / rows["gain"] if arm.leaks else 0.0),
            each(lambda arm: p.least_cosine if arm.kept else 0.0),
            matrices(lambda arm: random),
            matrices(lambda arm: eye + (arm.level if arm.trouble == "error" else 0.0) * stretch),
            each(lambda arm: arm.level if arm.trouble == "noise" else 0.0),
            each(lambda arm: int(arm.level) if arm.trouble == "late" else 0),
        )

    def _layers(self) -> np.ndarray:
        """The first layers of every row, (depth, w, w, rows)."""
        p, depth = self.p, self.stage.depth
        made: dict[tuple[int, float], np.ndarray] = {}
        for trial, beta in zip(
            self.rows["trial"].tolist(), self.rows["beta"].tolist(), strict=True
        ):
            if (trial, beta) not in made:
                made[trial, beta] = (
                    draws.softmax_layers(p.seed, trial, depth, beta, p.floor)
                    if self.width == 3
                    else draws.wide_layers(
                        p.seed, trial, own.WIDE, depth, beta, self.width, p.floor
                    )
                )
        at = zip(self.rows["trial"].tolist(), self.rows["beta"].tolist(), strict=True)
        return np.stack([made[one] for one in at], axis=-1)

    def _data(self, updates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, targets and order of every trial."""
        p = self.p
        if self.width != 3:
            epochs = -(-updates // (self.width + 3))
            drawn = [
                draws.wide(p.seed, trial, own.WIDE, self.width, p.concentration, epochs)
                for trial in range(p.trials)
            ]
            x, y, order = (np.stack(part) for part in zip(*drawn, strict=True))
            return x, y, order[:, :updates].astype(np.int8)
        x, y = draws.tasks(p.seed, p.trials, p.concentration)
        if self.stage.setting == "joint":
            return x[:, :3], y[:, :3], np.zeros((p.trials, updates), dtype=np.int8)
        return x, y, _orders(p.seed, p.trials, updates)

    def _senses(
        self, arms: Sequence[Arm], which: np.ndarray, trials: np.ndarray, updates: int
    ) -> np.ndarray:
        p, found = self.p, np.ones((len(which), updates), dtype=np.int8)
        for n, arm in enumerate(arms):
            here = which == n
            if arm.sense == "random":
                found[here] = _turns(p.seed, p.trials, updates)[trials[here]]
            elif arm.trouble == "flips":
                found[here] = _flips(p.seed, p.trials, updates, arm.level)[trials[here]]
        return found

    def _noise(self, shape: Shape, trials: np.ndarray, updates: int) -> np.ndarray:
        if not shape.noisy:
            return np.zeros((1, 1, 1))
        drawn = _noise(self.p.seed, self.p.trials, updates, self.size)
        return np.moveaxis(drawn[trials], 0, -1)

    def _chebyshev(self) -> np.ndarray:
        """Factors of the gain, at most one, from the roots of Chebyshev's polynomial between the
        weakest and the strongest mode at the start, (CYCLE, rows).
        """
        layers, (x, _, _) = self._layers(), self._data(1)
        inputs = np.moveaxis(x[self.rows["trial"]], 0, -1)
        shown = [inputs] if self.together > 1 else [inputs[s : s + 1] for s in range(len(inputs))]
        seen = [np.asarray(learners.response(layers, one)) for one in shown]
        values = np.concatenate(
            [np.linalg.eigvalsh(np.moveaxis(one, -1, 0)) for one in seen], axis=1
        )
        low, high = np.maximum(values.min(axis=1), 0.0), values.max(axis=1)
        roots = np.cos((2 * np.arange(CYCLE) + 1) * np.pi / (2 * CYCLE))[:, None]
        points = (low + high) / 2 + (high - low) / 2 * roots
        return points.min(axis=0) / points


def _chunked(call: Callable[[int, int], Any], count: int, chunk: int) -> list[np.ndarray]:
    """Chunks of one size on a CPU, all at once elsewhere; results side by side again."""
    size = chunk if fused.on_cpu() else count
    parts = [[np.asarray(one) for one in call(at, at + size)] for at in range(0, count, size)]
    return [np.concatenate(one, axis=-1)[..., :count] for one in zip(*parts, strict=True)]


@lru_cache(maxsize=4)
def _orders(seed: int, trials: int, updates: int) -> np.ndarray:
    epochs = -(-updates // SAMPLES)
    rows = [draws.order(seed, trial, epochs)[:updates] for trial in range(trials)]
    return np.stack(rows).astype(np.int8)


@lru_cache(maxsize=8)
def _turns(seed: int, trials: int, updates: int) -> np.ndarray:
    return np.stack([draws.turns(seed, t, updates) for t in range(trials)]).astype(np.int8)


@lru_cache(maxsize=8)
def _flips(seed: int, trials: int, updates: int, frequency: float) -> np.ndarray:
    rows = [own.flips(seed, t, updates, frequency) for t in range(trials)]
    return np.stack(rows).astype(np.int8)


@lru_cache(maxsize=2)
def _noise(seed: int, trials: int, updates: int, size: int) -> np.ndarray:
    return np.stack([own.noise(seed, t, updates, size) for t in range(trials)])
