"""The horizon kind: every trajectory simulated again from the drawn weights, samples and turns.

A learner is a batch of networks of one depth; all trajectories of a depth move together. The native
learner does not know the policy or the flip, so it is moved once for every trial, imbalance and
scale. The derived columns are the ledger of every update, and the sums and means of it.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from whorl_audit import draws, expect, network, plane, spec
from whorl_audit.draws import SAMPLES
from whorl_audit.expect import computed, drawn, interval, number, numbers, rows, same, summed, whole
from whorl_audit.formulas import TERMS, by_network, column_sums, means, stacked, sums, total
from whorl_audit.keys import grid, interleave, layered
from whorl_audit.kinds import Kind
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables, Whole

POLICIES = ("step_matched", "adaptive")
FLIPS = (0, 1)
TWINS = len(POLICIES) * len(FLIPS)
LOSSES = ("taken", "opposite", "still", "own", "native")
ENDS = ("nonreciprocal", "native")


def keys(p: Parameters) -> dict[str, Table]:
    """The keys of every table."""
    trials, updates = range(p["trials"]), range(SAMPLES * p["epochs"])
    betas, scales = np.asarray(p["betas"], float), np.asarray(p["scales"], float)
    place: dict[str, Any] = {"depth": p["depths"], "beta": betas, "scale": scales}
    rows = grid(trial=trials, **place, policy=POLICIES, flip=FLIPS)
    at = np.arange(len(rows["trial"]))
    return {
        "tasks": grid(trial=trials, sample=range(SAMPLES)),
        "weights": layered(grid(trial=trials, depth=p["depths"], beta=betas)),
        "schedule": grid(trial=trials, update=updates),
        "trajectories": {"trajectory": at, **rows},
        "updates": grid(trajectory=at, update=updates),
        "final_weights": layered({"trajectory": at, "depth": rows["depth"]}, drop=("depth",)),
        "trials": grid(trial=trials, policy=POLICIES),
        "conditions": grid(**place),
        "draws": grid(draw=range(p["resamples"])),
    }


def sizes(p: Parameters) -> dict[str, int]:
    """The rows of the longest tables."""
    starts, length = p["trials"] * len(p["betas"]), SAMPLES * p["epochs"]
    return {
        "tasks": SAMPLES * p["trials"],
        "weights": starts * 9 * sum(p["depths"]),
        "schedule": p["trials"] * length,
        "updates": starts * len(p["depths"]) * len(p["scales"]) * TWINS * length,
        "draws": p["resamples"],
    }


@dataclass(frozen=True)
class Batch:
    """Networks of one depth with their tasks, schedules and settings, one entry per network."""

    layers: Array
    inputs: Array
    targets: Array
    samples: Whole
    scale: Array

    def part(self, rows: Whole) -> "Batch":
        """Some of the networks, or some of them several times."""
        return Batch(*(getattr(self, field.name)[rows] for field in fields(self)))

    def scheduled(self, layers: Array, update: int) -> network.Selected:
        """The sample that drives an update."""
        return network.select(layers, self.inputs, self.targets, self.samples[:, update])

    def mean_loss(self, layers: Array) -> Array:
        """The loss of every network, averaged over its samples."""
        return network.losses(layers, self.inputs, self.targets) / SAMPLES

    def envelope(self, score: Array) -> Array:
        """The largest step that a score may take, `(batch, 1, 1, 1)`."""
        span = (score.max(axis=2) - score.min(axis=2)).max(axis=(1, 2))
        return (self.scale / np.maximum(1.0, span))[:, None, None, None]


def _leaky(chosen: network.Selected, right: Array, leak: float) -> Array:
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
    batch: Batch, layers: Array, chosen: network.Selected, across: Array, update: int
) -> Array:
    """Whether the scheduled sample's e . H_V exceeds ||G||^2 (Eq. 27)."""
    entering = batch.inputs[np.arange(len(layers)), batch.samples[:, update]][:, None]
    moved, bent = network.turn(layers, entering, across)
    inward = (plane.out_of(chosen.residual) * bent[:, 0]).sum(axis=1)
    return inward > np.square(moved[:, 0]).sum(axis=1)


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
        senses = [straight + sign * p["omega"] * across for sign in (1, -1)]
        either = np.minimum(*map(batch.envelope, senses))
        size = np.where((adaptive & ~opened)[:, None, None, None], own, either)
        amount = np.where(opened, float(p["omega"]), 0.0)
        turned = (turns[:, update] * amount)[:, None, None, None] * across
        ends = {
            "taken": network.step(layers, straight + turned, size),
            "opposite": network.step(layers, straight - turned, size),
            "still": network.step(layers, straight, size),
            "own": network.step(layers, straight, own),
        }
        losses = {name: batch.mean_loss(end) for name, end in ends.items()}
        rows.append(losses | {"size": size.ravel(), "amount": amount})
        layers = ends["taken"]
    return stacked(rows, axis=1), layers


def _depth(
    p: Parameters, depth: int, task: tuple[Array, Array], plan: tuple[Whole, Whole]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """All trajectories of a depth.

    Their updates `(trajectories, updates)`, and their weights at the start and at the end.
    """
    (inputs, targets), (samples, turns) = task, plan
    trials, scales = range(p["trials"]), np.asarray(p["scales"], float)
    cases = grid(trial=trials, beta=range(len(p["betas"])), scale=scales)
    rows = grid(case=range(len(cases["trial"])), adaptive=[False, True], sign=[1, -1])
    start = [
        [draws.softmax_layers(p["seed"], trial, depth, beta, p["floor"]) for beta in p["betas"]]
        for trial in trials
    ]
    first, trial, case = np.array(start), cases["trial"], rows["case"]
    layers = first[trial, cases["beta"]]
    single = Batch(layers, inputs[trial], targets[trial], samples[trial], cases["scale"])
    native, native_end = _native(single, p)
    turns = turns[trial][case] * rows["sign"][:, None]
    updates, end = _nonreciprocal(single.part(case), turns, rows["adaptive"], p)
    updates |= {"native": native[case], "start": single.mean_loss(layers)[case][:, None]}
    weights = {"nonreciprocal": end, "native": native_end[case]}
    return updates, {"start": first.reshape(-1, depth, 3, 3), **weights}


def _by_trial(parts: list[Array], trials: int) -> Array:
    """Rows of every depth, trial slowest, put in the order trial, depth, rest."""
    apart = [part.reshape(trials, -1, part.shape[-1]) for part in parts]
    return np.concatenate(apart, axis=1).reshape(-1, parts[0].shape[-1])


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    inputs, targets = draws.tasks(p["seed"], p["trials"], p["concentration"])
    pairs = [draws.schedule(p["seed"], trial, p["epochs"]) for trial in range(p["trials"])]
    samples, turns = (np.array(part) for part in zip(*pairs, strict=True))
    parts = {depth: _depth(p, depth, (inputs, targets), (samples, turns)) for depth in p["depths"]}
    updates = {
        name: _by_trial([part[0][name] for part in parts.values()], p["trials"])
        for name in (*LOSSES, "size", "amount", "start")
    }
    weights = {
        name: {depth: part[1][name] for depth, part in parts.items()} for name in ("start", *ENDS)
    }
    first = grid(trial=range(p["trials"]), depth=p["depths"], beta=p["betas"])["depth"]
    depths = keys(p)["trajectories"]["depth"]
    ends = {name: interleave(depths, weights[name]) for name in ENDS}
    stretch = expect.stretched(1 / max(p["leak"], 1e-9))
    return {
        "tasks": expect.task_columns(inputs, targets),
        "weights": {"weight": drawn(interleave(first, weights["start"]))},
        "schedule": {"sample": whole(samples), "turn": whole(turns)},
        "trajectories": {"start": expect.loss(updates["start"])},
        "updates": {
            **{name: expect.loss(updates[name], stretch) for name in LOSSES},
            "size": computed(updates["size"], updates["size"] * stretch),
            "amount": computed(updates["amount"]),
        },
        "final_weights": {name: computed(one, one * stretch) for name, one in ends.items()},
    }


def increments(tables: Tables) -> dict[str, Array]:
    """The loss increments of every update, `(trajectories, updates)`: a, o, z, w and n."""
    start = tables["trajectories"]["start"][:, None]
    losses = {name: tables["updates"][name].reshape(len(start), -1) for name in LOSSES}
    before = {
        name: np.concatenate([start, losses[name][:, :-1]], axis=1) for name in ("taken", "native")
    }
    return {
        name: values - before["native" if name == "native" else "taken"]
        for name, values in losses.items()
    }


def _updates(tables: Tables, _: Parameters) -> Columns:
    a, o, z, w, n = increments(tables).values()
    middle = (a + o) / 2
    ledger = (middle - z, a - middle, z - w, w - n)
    return {name: same(values.ravel()) for name, values in zip(TERMS, ledger, strict=True)}


def _trajectories(tables: Tables, _: Parameters) -> Columns:
    table, updates, weights = tables["trajectories"], tables["updates"], tables["final_weights"]
    rows = len(table["trajectory"])
    last = {name: updates[name].reshape(rows, -1)[:, -1] for name in ("taken", "native")}
    terms = {name: sums(updates[name].reshape(rows, -1)) for name in TERMS}
    gap = last["taken"] - last["native"]
    lowest = [by_network(weights[name].reshape(-1, 9), table["depth"], np.minimum) for name in ENDS]
    return {
        "final": same(last["taken"]),
        "native": same(last["native"]),
        "gap": same(gap),
        **{name: same(values) for name, values in terms.items()},
        "closure": same(np.abs(total(terms) - gap)),
        "opened": whole((updates["amount"].reshape(rows, -1) > 0).sum(axis=1)),
        "smallest": same(np.minimum(*lowest)),
    }


def _shaped(values: Array, p: Parameters) -> Array:
    """A column of `trajectories` as `(trial, condition, policy, flip)`."""
    return values.reshape(p["trials"], -1, len(POLICIES), 2)


def _trials(tables: Tables, p: Parameters) -> Columns:
    columns = {}
    for name in ("gap", *TERMS):
        values = np.swapaxes(_shaped(tables["trajectories"][name], p), 1, 2)
        columns[name] = same(means(values.reshape(p["trials"] * len(POLICIES), -1)))
    return columns


def _conditions(tables: Tables, p: Parameters) -> Columns:
    gaps = _shaped(tables["trajectories"]["gap"], p)
    matched, adaptive = (
        means(np.swapaxes(gaps[:, :, policy], 0, 1).reshape(gaps.shape[1], -1))
        for policy in range(len(POLICIES))
    )
    flips = gaps.mean(axis=3)
    gain = flips[:, :, 0] - flips[:, :, 1]
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], p["trials"])
    lower, upper = np.quantile(gain[chosen].mean(axis=1), [0.025, 0.975], axis=0)
    scale = np.abs(flips).max(axis=(0, 2))
    return {
        "gap_step_matched": same(matched),
        "gap_adaptive": same(adaptive),
        "gain": same(matched - adaptive),
        "lower": summed(lower, scale),
        "upper": summed(upper, scale),
    }


def _draws(tables: Tables, p: Parameters) -> Columns:
    gaps = tables["trials"]["gap"].reshape(p["trials"], len(POLICIES))
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], p["trials"])
    matched, adaptive = gaps[chosen].mean(axis=1).T
    scale = np.full(len(chosen), np.abs(gaps).max())
    columns = {"gap_step_matched": matched, "gap_adaptive": adaptive, "gain": matched - adaptive}
    return {name: summed(values, scale) for name, values in columns.items()}


def _means(tables: Tables) -> dict[str, Expected]:
    """Means over trials by policy, what the adaptive policy recovers of the step term, and what
    drift takes back.
    """
    table, resampled, result, mean = tables["trials"], tables["draws"], {}, {}
    size = {name: np.abs(table[name]).mean() for name in ("gap", *TERMS)}
    for policy in POLICIES:
        here = table["policy"] == policy
        mean |= {(name, policy): table[name][here].mean() for name in size}
        for name in ("gap", "step", "drift"):
            result[f"{name}.{policy}"] = number(mean[name, policy], size[name])
        turning = mean["even", policy] + mean["handedness", policy]
        result[f"turning.{policy}"] = number(turning, size["even"] + size["handedness"])
        result |= interval(f"gap.{policy}", resampled[f"gap_{policy}"])
    gain, recovered = (
        mean[name, "step_matched"] - mean[name, "adaptive"] for name in ("gap", "step")
    )
    result["gain"] = number(gain, size["gap"])
    result |= interval("gain", resampled["gain"], size["gap"])
    result["conditions.adaptive_better"] = number(float((tables["conditions"]["gain"] > 0).sum()))
    result["step.recovered"] = number(recovered, size["step"])
    if recovered != 0:
        offset = (mean["drift", "adaptive"] - mean["drift", "step_matched"]) / recovered
        terms = 1 + size["step"] / abs(recovered)
        result["drift.offset"] = number(offset, max(1.0, abs(offset)) * terms)
    return result


def _closures(tables: Tables) -> dict[str, float]:
    """What is left over of the identity.

    At every update, along every trajectory, between the policies of every pair.
    """
    table, by = tables["trajectories"], increments(tables)
    step = np.abs(total(tables["updates"]) - (by["taken"] - by["native"]).ravel())
    sums, gaps = (values.reshape(-1, len(POLICIES), 2) for values in (total(table), table["gap"]))
    paired = np.abs((sums[:, 0] - sums[:, 1]) - (gaps[:, 0] - gaps[:, 1]))
    twins = tables["updates"]["native"].reshape(len(gaps), TWINS, -1)
    return {
        "closure.step.max": step.max(),
        "closure.trajectory.max": table["closure"].max(),
        "closure.paired.max": paired.max(),
        "native.difference": (twins.max(axis=1) - twins.min(axis=1)).max(),
    }


def statistics(tables: Tables, _: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    weights = np.concatenate([tables["final_weights"][name] for name in ENDS])
    residual = np.abs(column_sums(weights) - 1).max()
    plain = {"weight.min": weights.min(), "column_residual.max": residual}
    return {
        **rows(tables, "updates", "trajectories", "conditions"),
        **_means(tables),
        **numbers(_closures(tables) | plain),
    }


KIND = Kind(
    spec=spec.of("horizon"),
    keys=keys,
    sizes=sizes,
    expected=expected,
    derived={
        "updates": _updates,
        "trajectories": _trajectories,
        "trials": _trials,
        "conditions": _conditions,
        "draws": _draws,
    },
    statistics=statistics,
    roundoff={
        "column_residual.max": None,
        "closure.step.max": None,
        "closure.trajectory.max": ("trajectories", "closure", 8),
        "closure.paired.max": None,
    },
    paper=True,
)
