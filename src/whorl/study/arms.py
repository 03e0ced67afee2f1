"""The arms of the foresight study: what is chosen from, and what spoils the choice.

Each arm at each horizon and depth is one call of `train_many`.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

from whorl.ensemble import Ensemble, stack, train_many
from whorl.feedback import leaky, rotational
from whorl.foresight import TURNS, Rollout, rollout, steps
from whorl.study import _frames, draws
from whorl.study.spoilt import spoilt
from whorl.systems.layered import Network

MAIN = ("turns", "halves", "quarters", "random", "straight")
TERMS = ("even", "handedness", "step", "drift")


class Arm(NamedTuple):
    """One arm and where it runs."""

    name: str
    horizons: list[int]
    width: int
    depths: list[int]
    trials: int
    true: bool  # whether what it foresees is what will happen


def arms(p: SimpleNamespace) -> list[Arm]:
    """All arms, in the order of the tables."""
    main = [Arm(name, p.horizons, 3, p.depths, p.trials, True) for name in MAIN]
    spoilt = ["wrong_schedule", *(noise_name(level) for level in p.noises)]
    blind = [Arm(name, p.robust_horizons, 3, p.depths, p.trials, False) for name in spoilt]
    other = [
        Arm(omega_name(omega), p.robust_horizons, 3, p.depths, p.trials, True) for omega in p.omegas
    ]
    deep = Arm("deep", p.robust_horizons, 3, [p.deep], p.trials, True)
    wide = Arm("wide", p.robust_horizons, p.wide, [p.depths[-1]], p.wide_trials, True)
    return [*main, *blind, *other, deep, wide]


def noise_name(level: float) -> str:
    """The arm that reads losses with this relative noise."""
    return f"noise_{float(level)!r}"


def omega_name(omega: float) -> str:
    """The arm with this amount of turning."""
    return f"omega_{float(omega)!r}"


def keys(p: SimpleNamespace, arm: Arm, horizon: int, depth: int) -> _frames.Table:
    """The rows of one call, trials varying fastest."""
    betas, scales = (np.asarray(values, dtype=float) for values in (p.betas, p.scales))
    return _frames.product(
        arm=[arm.name],
        horizon=[horizon],
        width=[arm.width],
        depth=[depth],
        beta=betas,
        scale=scales,
        trial=range(arm.trials),
    )


def compute(p: SimpleNamespace, arm: Arm, horizon: int, depth: int) -> dict[str, np.ndarray]:
    """All trajectories of an arm, a horizon and a depth."""
    rows = keys(p, arm, horizon, depth)
    nets, x, y, order = _wide(p, rows) if arm.name == "wide" else narrow(p, rows)
    policy = _policy(p, arm.name, rows, None if horizon < 0 else horizon)
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


def _by_trial(rows: _frames.Table, make: Any) -> np.ndarray:
    """What belongs to a trial, for every row."""
    made = {trial: make(trial) for trial in np.unique(rows["trial"]).tolist()}
    return np.stack([made[trial] for trial in rows["trial"].tolist()])


def narrow(
    p: SimpleNamespace, rows: _frames.Table
) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    """Networks of width three with their data and orders, one a row."""
    at = list(
        zip(rows["trial"].tolist(), rows["depth"].tolist(), rows["beta"].tolist(), strict=True)
    )
    layers = {key: draws.softmax_layers(p.seed, *key, p.floor) for key in dict.fromkeys(at)}
    x, y = (
        _by_trial(rows, lambda trial, part=part: draws.task(p.seed, trial, p.concentration)[part])
        for part in (0, 1)
    )
    return (
        _frames.network(np.stack([layers[key] for key in at])),
        x,
        y,
        _by_trial(rows, lambda t: draws.order(p.seed, t, p.epochs)),
    )


def _wide(
    p: SimpleNamespace, rows: _frames.Table
) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    at = zip(rows["trial"].tolist(), rows["depth"].tolist(), rows["beta"].tolist(), strict=True)
    nets = stack(
        [
            Network(list(draws.wide_layers(p.seed, trial, p.wide, depth, beta, p.floor)))
            for trial, depth, beta in at
        ]
    )
    drawn = {
        trial: draws.wide(p.seed, trial, p.wide, p.concentration, p.epochs)
        for trial in range(p.wide_trials)
    }
    x, y, order = (
        np.stack([drawn[trial][part] for trial in rows["trial"].tolist()]) for part in range(3)
    )
    return nets, x, y, order


def _policy(p: SimpleNamespace, arm: str, rows: _frames.Table, horizon: int | None) -> Rollout:
    """What an arm chooses from, with what spoils it."""
    law = rotational(p.alpha, base=leaky(p.leak))
    updates = p.epochs * 6
    actions = {"halves": steps(*p.halves), "quarters": steps(*p.quarters)}.get(arm, TURNS)
    omega = {omega_name(one): one for one in p.omegas}.get(arm, p.omega)
    tables: dict[str, np.ndarray] = {}
    if arm == "random":
        tables["angles"] = _by_trial(rows, lambda trial: draws.angles(p.seed, trial, updates))
    elif arm == "straight":
        tables["angles"] = np.zeros((len(rows["trial"]), updates))
    elif arm == "wrong_schedule":
        tables["foreseen"] = _by_trial(rows, lambda trial: draws.foreseen(p.seed, trial, p.epochs))
    elif arm in (levels := {noise_name(level): level for level in p.noises}):
        tables["errors"] = levels[arm] * _by_trial(
            rows, lambda trial: draws.readings(p.seed, trial, updates)
        )
    with jax.ensure_compile_time_eval():
        plain = rollout(rows["scale"], horizon=horizon, actions=actions, omega=omega, law=law)
        return spoilt(plain, **tables)
