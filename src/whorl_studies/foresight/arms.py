"""The arms of the foresight study: what is chosen from, and what spoils the choice."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from whorl import Ensemble, Network, Policy, leaky, rollout, rotational, train_many
from whorl.study import frames
from whorl.study.compute import TERMS, TURNS, stacked, steps
from whorl.study.draws import order as shown
from whorl.study.draws import softmax_layers, task, wide, wide_layers
from whorl.study.frames import Table
from whorl.study.kind import Arrays
from whorl.study.parameters import Coupled
from whorl_studies.foresight import draws
from whorl_studies.foresight.spoilt import spoilt

Problem = tuple[Network, np.ndarray, np.ndarray, np.ndarray]  # and inputs, targets, order
NETWORK = ("trial", "depth", "beta")  # the keys that a network is drawn for
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


def arms(p: Coupled) -> list[Arm]:
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


def calls(p: Coupled) -> list[Call]:
    """Every arm at each of its horizons and depths, in the order of the tables."""
    return [
        Call(arm, horizon, depth)
        for arm in arms(p)
        for horizon in arm.horizons
        for depth in arm.depths
    ]


def keys(p: Coupled, call: Call) -> Table:
    """The rows of one call, trials varying fastest."""
    arm = {"arm": [call.arm.name], "horizon": [call.horizon], "width": [call.arm.width]}
    here = p.conditions | {"depth": [call.depth], "trial": range(call.arm.trials)}
    return frames.product(**arm, **here)


def compute(p: Coupled, call: Call) -> Arrays:
    """All trajectories of an arm, a horizon and a depth."""
    rows, arm = keys(p, call), call.arm
    nets, x, y, order = _wide(p, rows) if arm.width != 3 else narrow(p, rows)
    policy = _policy(p, arm, rows, None if call.horizon < 0 else call.horizon)
    # both senses are among the actions: the schedule need not name one
    turns = np.ones(order.shape, dtype=int)
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


def _each(rows: Table, make: Callable[..., np.ndarray], *keys: str) -> np.ndarray:
    """What belongs to a trial, or to other keys, for every row."""
    at = list(zip(*(rows[key].tolist() for key in keys or ("trial",)), strict=True))
    made = {one: make(*one) for one in dict.fromkeys(at)}
    return np.stack([made[one] for one in at])


def narrow(p: Coupled, rows: Table) -> Problem:
    """Networks of width three with their data and orders, one per row."""
    layers = _each(rows, lambda t, d, b: softmax_layers(p.seed, t, d, b, p.floor), *NETWORK)
    x, y = (
        _each(rows, lambda trial, side=side: task(p.seed, trial, p.concentration)[side])
        for side in (0, 1)
    )
    return stacked(layers), x, y, _each(rows, lambda trial: shown(p.seed, trial, p.epochs))


def _wide(p: Coupled, rows: Table) -> Problem:
    def layers(trial: int, depth: int, beta: float) -> np.ndarray:
        return wide_layers(p.seed, trial, draws.WIDE, depth, beta, p.wide, p.floor)

    def data(trial: int) -> tuple[np.ndarray, ...]:
        return wide(p.seed, trial, draws.WIDE, p.wide, p.concentration, p.epochs)

    x, y, order = (_each(rows, lambda trial, part=part: data(trial)[part]) for part in range(3))
    return stacked(_each(rows, layers, *NETWORK)), x, y, order


def _policy(p: Coupled, arm: Arm, rows: Table, horizon: int | None) -> Policy:
    """What an arm chooses from, with what spoils it."""
    law = rotational(p.alpha, base=leaky(p.leak))
    actions = {"halves": steps(*p.halves), "quarters": steps(*p.quarters)}.get(arm.name, TURNS)
    tables: Arrays = {}
    if arm.name == "random":
        tables["angles"] = _each(rows, lambda trial: draws.angles(p.seed, trial, p.updates))
    elif arm.name == "straight":
        tables["angles"] = np.zeros((len(rows["trial"]), p.updates))
    elif arm.name == "wrong_schedule":
        tables["foreseen"] = _each(rows, lambda trial: draws.foreseen(p.seed, trial, p.epochs))
    elif arm.noise:
        tables["errors"] = arm.noise * _each(
            rows, lambda trial: draws.readings(p.seed, trial, p.updates)
        )
    with jax.ensure_compile_time_eval():
        plain = rollout(rows["scale"], horizon=horizon, actions=actions, omega=arm.omega, law=law)
        return spoilt(plain, **tables)
