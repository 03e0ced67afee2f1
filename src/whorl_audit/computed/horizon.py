"""The horizon kind: every trajectory simulated again from the drawn weights, samples and turns.

A learner is a batch of networks of one depth; all trajectories of a depth move together. The native
learner does not know the policy or the flip, so it is moved once for every trial, imbalance and
scale.
"""

from dataclasses import dataclass

import numpy as np

from whorl_audit import draws, keys, network, plane
from whorl_audit.computed import common
from whorl_audit.computed.common import computed, drawn, exact
from whorl_audit.types import Array, Columns, Parameters, Whole

TWINS = len(keys.POLICIES) * len(keys.FLIPS)
LOSSES = ("taken", "opposite", "still", "own", "native")


@dataclass(frozen=True)
class Batch:
    """Networks of one depth with their tasks, schedules and settings, all with one entry a
    network.
    """

    layers: Array
    inputs: Array
    targets: Array
    samples: Whole
    scale: Array

    def scheduled(self, layers: Array, update: int) -> common.Selected:
        """The sample that drives an update."""
        return common.select(layers, self.inputs, self.targets, self.samples[:, update])

    def mean_loss(self, layers: Array) -> Array:
        """The loss of every network, averaged over its samples."""
        return network.losses(layers, self.inputs, self.targets) / draws.SAMPLES

    def envelope(self, score: Array) -> Array:
        """The largest step that a score may take, `(batch, 1, 1, 1)`."""
        span = (score.max(axis=2) - score.min(axis=2)).max(axis=(1, 2))
        return (self.scale / np.maximum(1.0, span))[:, None, None, None]


def _leaky(chosen: common.Selected, right: Array, leak: float) -> Array:
    return chosen.score(plane.solve(chosen.response + leak * np.eye(2), right))


def _native(batch: Batch, p: Parameters) -> tuple[Array, Array]:
    """Losses `(batch, updates)` and final states of the native learner."""
    layers, losses = batch.layers, []
    for update in range(batch.samples.shape[1]):
        chosen = batch.scheduled(layers, update)
        score = p["alpha"] * _leaky(chosen, chosen.residual, p["leak"])
        layers = network.step(layers, score, batch.envelope(score))
        losses.append(batch.mean_loss(layers))
    return np.stack(losses, axis=1), layers


def _favourable(
    batch: Batch, layers: Array, chosen: common.Selected, across: Array, update: int
) -> Array:
    """Whether the scheduled sample's e . H_V exceeds ||G||^2 (Eq. 27)."""
    entering = batch.inputs[np.arange(len(layers)), batch.samples[:, update]][:, None]
    moved, bent = network.turn(layers, entering, across)
    return (plane.out_of(chosen.residual) * bent[:, 0]).sum(axis=1) > np.square(moved[:, 0]).sum(
        axis=1
    )


def _nonreciprocal(
    batch: Batch, turns: Whole, adaptive: Array, p: Parameters
) -> tuple[dict[str, Array], Array]:
    """The columns `(batch, updates)` of `updates` but the native one, and final states."""
    layers, rows = batch.layers, []
    for update in range(batch.samples.shape[1]):
        chosen = batch.scheduled(layers, update)
        straight = p["alpha"] * _leaky(chosen, chosen.residual, p["leak"])
        across = _leaky(chosen, plane.mix(chosen.residual, 0.0, 1.0), p["leak"])
        opened = _favourable(batch, layers, chosen, across, update)
        own = batch.envelope(straight)
        either = np.minimum(
            batch.envelope(straight + p["omega"] * across),
            batch.envelope(straight - p["omega"] * across),
        )
        size = np.where((adaptive & ~opened)[:, None, None, None], own, either)
        amount = np.where(opened, float(p["omega"]), 0.0)
        turned = (turns[:, update] * amount)[:, None, None, None] * across
        moves = (
            (straight + turned, size),
            (straight - turned, size),
            (straight, size),
            (straight, own),
        )
        states = [network.step(layers, score, reach) for score, reach in moves]
        rows.append([*(batch.mean_loss(state) for state in states), size.ravel(), amount])
        layers = states[0]
    names = ("taken", "opposite", "still", "own", "size", "amount")
    return {
        name: np.stack(values, axis=1)
        for name, values in zip(names, zip(*rows, strict=True), strict=True)
    }, layers


def _depth(
    p: Parameters, depth: int, task: tuple[Array, Array], plan: tuple[Whole, Whole]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """All trajectories of a depth.

    Their updates `(trajectories, updates)`, and their weights at the start and at the end.
    """
    (inputs, targets), (samples, turns) = task, plan
    cases = keys.grid(
        trial=range(p["trials"]), beta=range(len(p["betas"])), scale=np.asarray(p["scales"], float)
    )
    rows = keys.grid(case=range(len(cases["trial"])), adaptive=[False, True], sign=[1, -1])
    start = np.array(
        [
            [draws.softmax_layers(p["seed"], trial, depth, beta, p["floor"]) for beta in p["betas"]]
            for trial in range(p["trials"])
        ]
    )
    trial = cases["trial"]
    single = Batch(
        start[trial, cases["beta"]], inputs[trial], targets[trial], samples[trial], cases["scale"]
    )
    case = rows["case"]
    coupled = Batch(
        single.layers[case],
        single.inputs[case],
        single.targets[case],
        single.samples[case],
        single.scale[case],
    )
    native, native_end = _native(single, p)
    updates, end = _nonreciprocal(
        coupled, turns[trial][case] * rows["sign"][:, None], rows["adaptive"], p
    )
    updates |= {
        "native": native[case],
        "start": np.repeat(single.mean_loss(single.layers), TWINS)[:, None],
    }
    return updates, {
        "start": start.reshape(-1, depth, 3, 3),
        "nonreciprocal": end,
        "native": native_end[case],
    }


def _by_trial(parts: list[Array], trials: int) -> Array:
    """Rows of every depth, trial slowest, put in the order trial, depth, rest."""
    return np.concatenate(
        [part.reshape(trials, -1, part.shape[-1]) for part in parts], axis=1
    ).reshape(-1, parts[0].shape[-1])


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    inputs, targets = draws.tasks(p["seed"], p["trials"], p["concentration"])
    pairs = [draws.schedule(p["seed"], trial, p["epochs"]) for trial in range(p["trials"])]
    samples, turns = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    parts = {depth: _depth(p, depth, (inputs, targets), (samples, turns)) for depth in p["depths"]}
    row_keys = keys.horizon(p)
    updates = {
        name: _by_trial([part[0][name] for part in parts.values()], p["trials"])
        for name in (*LOSSES, "size", "amount", "start")
    }
    weights = {
        name: {depth: part[1][name] for depth, part in parts.items()}
        for name in ("start", "nonreciprocal", "native")
    }
    depths = row_keys["trajectories"]["depth"]
    ends = {name: keys.interleave(depths, weights[name]) for name in ("nonreciprocal", "native")}
    stretch = common.stretched(1 / max(p["leak"], 1e-9))
    first = keys.grid(trial=range(p["trials"]), depth=p["depths"], beta=p["betas"])["depth"]
    return {
        "tasks": common.task_columns(inputs, targets),
        "weights": {"weight": drawn(keys.interleave(first, weights["start"]))},
        "schedule": {"sample": exact(samples), "turn": exact(turns)},
        "trajectories": {"start": common.loss(updates["start"])},
        "updates": {
            **{name: common.loss(updates[name], stretch) for name in LOSSES},
            "size": computed(updates["size"], updates["size"] * stretch),
            "amount": computed(updates["amount"]),
        },
        "final_weights": {
            name: computed(values, values * stretch) for name, values in ends.items()
        },
    }
