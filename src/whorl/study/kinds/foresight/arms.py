"""The arms of the foresight study: what is chosen from, and what spoils the choice."""

from typing import Any, NamedTuple

import jax
import numpy as np

from whorl.ensemble import Ensemble, stacked, train_many
from whorl.feedback import leaky, rotational
from whorl.foresight import TURNS, Rollout, rollout, steps
from whorl.ledger import TERMS
from whorl.study import frames
from whorl.study.draws import order as shown
from whorl.study.draws import softmax_layers, task
from whorl.study.frames import Table
from whorl.study.kind import Arrays
from whorl.study.kinds.foresight import draws
from whorl.study.kinds.foresight.parameters import Foresight
from whorl.study.kinds.foresight.spoilt import spoilt
from whorl.systems.layered import Network

MAIN = ("turns", "halves", "quarters", "random", "straight")


class Arm(NamedTuple):
    """One arm and where it runs."""

    name: str
    horizons: tuple[int, ...]
    depths: tuple[int, ...]
    trials: int
    omega: float  # amount of turning
    width: int = 3
    noise: float = 0.0  # relative error of the losses that it reads
    true: bool = True  # whether what it foresees is what will happen


class Call(NamedTuple):
    """The stage of one arm at one horizon and depth, which is one call of `train_many`."""

    arm: Arm
    horizon: int
    depth: int

    @property
    def name(self) -> str:
        """As in `turns-k4-depth2`."""
        return f"{self.arm.name}-{label(self.horizon)}-depth{self.depth}"


def label(horizon: int) -> str:
    """A horizon in the name of a stage or a statistic."""
    return "end" if horizon < 0 else f"k{horizon}"


def arms(p: Foresight) -> list[Arm]:
    """All arms, in the order of the tables."""
    deep = tuple(p.depths)
    main = [Arm(name, tuple(p.horizons), deep, p.trials, p.omega) for name in MAIN]
    other = Arm("", tuple(p.robust_horizons), deep, p.trials, p.omega)
    noisy = [
        other._replace(name=f"noise_{float(one)!r}", noise=one, true=False) for one in p.noises
    ]
    turning = [other._replace(name=f"omega_{float(one)!r}", omega=one) for one in p.omegas]
    return [
        *main,
        other._replace(name="wrong_schedule", true=False),
        *noisy,
        *turning,
        other._replace(name="deep", depths=(p.deep,)),
        other._replace(name="wide", width=p.wide, depths=deep[-1:], trials=p.wide_trials),
    ]


def calls(p: Foresight) -> list[Call]:
    """Every arm at each of its horizons and depths, in the order of the tables."""
    return [
        Call(arm, horizon, depth)
        for arm in arms(p)
        for horizon in arm.horizons
        for depth in arm.depths
    ]


def keys(p: Foresight, call: Call) -> Table:
    """The rows of one call, trials varying fastest."""
    betas, scales = (np.asarray(values, dtype=float) for values in (p.betas, p.scales))
    return frames.product(
        arm=[call.arm.name],
        horizon=[call.horizon],
        width=[call.arm.width],
        depth=[call.depth],
        beta=betas,
        scale=scales,
        trial=range(call.arm.trials),
    )


def compute(p: Foresight, call: Call) -> Arrays:
    """All trajectories of an arm, a horizon and a depth."""
    rows, arm = keys(p, call), call.arm
    nets, x, y, order = _wide(p, rows) if arm.width != 3 else narrow(p, rows)
    policy = _policy(p, arm, rows, None if call.horizon < 0 else call.horizon)
    turns = np.ones(
        order.shape, dtype=int
    )  # both senses are among the actions: the schedule need not name one
    made = train_many(
        nets, x, y, policy=policy, schedule=order, turns=turns, record=True, chunk=p.chunk
    )
    if not made.completed.all():
        raise ValueError(
            f"every pair must stay in the interior, but {int((~made.completed).sum())} of arm "
            f"{arm.name} did not"
        )
    assert made.updates is not None
    sums = {name: np.asarray(getattr(made.ledger.sums, name)) for name in TERMS}
    ends = {"start": made.start, "final": made.final[0], "native": made.final[1]}
    return (
        ends
        | sums
        | {"smallest": _smallest(made), "choices": np.asarray(made.updates.choice).astype(np.int8)}
    )


def _smallest(made: Ensemble) -> np.ndarray:
    layers = [
        np.asarray(layer) for net in (made.nonreciprocal, made.native) for layer in net.layers
    ]
    return np.min([layer.min(axis=(1, 2)) for layer in layers], axis=0)


def _by_trial(rows: Table, make: Any) -> np.ndarray:
    """What belongs to a trial, for every row."""
    made = {trial: make(trial) for trial in np.unique(rows["trial"]).tolist()}
    return np.stack([made[trial] for trial in rows["trial"].tolist()])


def narrow(p: Foresight, rows: Table) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    """Networks of width three with their data and orders, one a row."""
    at = list(
        zip(rows["trial"].tolist(), rows["depth"].tolist(), rows["beta"].tolist(), strict=True)
    )
    layers = {key: softmax_layers(p.seed, *key, p.floor) for key in dict.fromkeys(at)}
    x, y = (
        _by_trial(rows, lambda trial, part=part: task(p.seed, trial, p.concentration)[part])
        for part in (0, 1)
    )
    return (
        stacked(np.stack([layers[key] for key in at])),
        x,
        y,
        _by_trial(rows, lambda t: shown(p.seed, t, p.epochs)),
    )


def _wide(p: Foresight, rows: Table) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    at = zip(rows["trial"].tolist(), rows["depth"].tolist(), rows["beta"].tolist(), strict=True)
    layers = [
        draws.wide_layers(p.seed, trial, p.wide, depth, beta, p.floor) for trial, depth, beta in at
    ]
    drawn = {
        trial: draws.wide(p.seed, trial, p.wide, p.concentration, p.epochs)
        for trial in range(p.wide_trials)
    }
    x, y, order = (
        np.stack([drawn[trial][part] for trial in rows["trial"].tolist()]) for part in range(3)
    )
    return stacked(np.stack(layers)), x, y, order


def _policy(p: Foresight, arm: Arm, rows: Table, horizon: int | None) -> Rollout:
    """What an arm chooses from, with what spoils it."""
    law = rotational(p.alpha, base=leaky(p.leak))
    actions = {"halves": steps(*p.halves), "quarters": steps(*p.quarters)}.get(arm.name, TURNS)
    tables: Arrays = {}
    if arm.name == "random":
        tables["angles"] = _by_trial(rows, lambda trial: draws.angles(p.seed, trial, p.updates))
    elif arm.name == "straight":
        tables["angles"] = np.zeros((len(rows["trial"]), p.updates))
    elif arm.name == "wrong_schedule":
        tables["foreseen"] = _by_trial(rows, lambda trial: draws.foreseen(p.seed, trial, p.epochs))
    elif arm.noise:
        tables["errors"] = arm.noise * _by_trial(
            rows, lambda trial: draws.readings(p.seed, trial, p.updates)
        )
    with jax.ensure_compile_time_eval():
        plain = rollout(rows["scale"], horizon=horizon, actions=actions, omega=arm.omega, law=law)
        return spoilt(plain, **tables)
