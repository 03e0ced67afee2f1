"""The foresight kind.

What is drawn, and every trajectory followed again along the choices that are stored.

No foresight is needed for that. Whether the choices are the lowest readings is tried on a sample of
them, with states met on the way.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from whorl_audit import draws, foresight, keys
from whorl_audit.computed.common import computed, drawn, exact, loss, task_columns
from whorl_audit.foresight import END, LEARNERS, Crowd, mixed, step
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables, Whole

TRIED = 24  # choices of every arm, horizon and depth that are tried again
ALIKE = 1e-11  # readings that agree to this share of their size count as equal
PATIENCE = (
    2500  # updates up to which all trials of a comparator are followed; beyond, the first one
)


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn column."""
    trials, seed = range(p["trials"]), p["seed"]
    inputs, targets = draws.tasks(seed, p["trials"], p["concentration"])
    depths = list(dict.fromkeys([*p["depths"], p["deep"]]))
    weights = [
        draws.softmax_layers(seed, t, depth, beta, p["floor"]).ravel()
        for t in trials
        for depth in depths
        for beta in p["betas"]
    ]
    foreseen, angles, errors = _tables(seed, p["trials"], p["epochs"])
    samples = np.array([draws.schedule(seed, trial, p["epochs"])[0] for trial in trials])
    return {
        "tasks": task_columns(inputs, targets),
        "weights": {"weight": drawn(np.concatenate(weights))},
        "schedule": {
            "sample": exact(samples),
            "foreseen": exact(foreseen),
            "angle": drawn(angles),
        },
        "readings": {"error": drawn(errors)},
    }


@lru_cache(maxsize=2)
def _tables(seed: int, trials: int, epochs: int) -> tuple[Whole, Array, Array]:
    """The wrong orders, the angles and the errors of all trials."""
    orders = [foresight.order(draws.stream(seed, trial, 6), epochs, 6) for trial in range(trials)]
    angles = [
        draws.stream(seed, trial, 5).uniform(0.0, 2 * np.pi, 6 * epochs) for trial in range(trials)
    ]
    errors = [
        draws.stream(seed, trial, 7).standard_normal((6 * epochs, 3)) for trial in range(trials)
    ]
    return np.array(orders), np.array(angles), np.array(errors)


@dataclass(frozen=True)
class Block:
    """The trajectories of one arm, horizon and depth."""

    p: Parameters
    arm: foresight.Arm
    horizon: int
    rows: Table  # the keys of its trajectories
    crowd: Crowd
    layers: list[Array]
    order: Whole

    @property
    def spoilt(self) -> tuple[Whole, Array, Array]:
        """The wrong orders, the angles and the errors of all trials."""
        return _tables(self.p["seed"], self.p["trials"], self.p["epochs"])

    def actions(
        self, straight: list[Array], turning: list[Array], crowd: Crowd, trials: Whole, at: Whole
    ) -> list[tuple[list[Array], Array, float]]:
        """Score, step and sense of the three actions; `at` is the update of each network."""
        none, one, native = np.zeros(len(at)), np.ones(len(at)), crowd.reach(straight)
        name = self.arm.name
        if name in ("halves", "quarters"):
            return [(straight, fraction * native, 0.0) for fraction in self.p[name]]
        if name in ("random", "straight"):
            angle = self.spoilt[1][trials, at] if name == "random" else none
            turning = mixed(straight, turning, np.cos(angle), np.sin(angle))
        omega = float(name.partition("_")[2]) if name.startswith("omega_") else self.p["omega"]
        senses = [mixed(straight, turning, one, sign * omega * one) for sign in (1, -1)]
        kept = np.minimum(*(crowd.reach(score) for score in senses))
        return [(straight, native, 0.0), (senses[0], kept, 1.0), (senses[1], kept, -1.0)]


def blocks(p: Parameters) -> Iterator[Block]:
    """All blocks, in the order of the trajectories."""
    cases = foresight.keys(p)
    first, tasks = 0, {}
    for arm in foresight.arms(p):
        for trial in range(arm.trials):
            tasks.setdefault((arm.width, trial), foresight.task(p, trial, arm.width))
        size = len(p["betas"]) * len(p["scales"]) * arm.trials
        for horizon in arm.horizons:
            for depth in arm.depths:
                rows = {name: values[first : first + size] for name, values in cases.items()}
                first += size
                starts = {
                    (t, b): foresight.start(p, t, arm.width, depth, b)
                    for t in range(arm.trials)
                    for b in dict.fromkeys(rows["beta"].tolist())
                }
                layers = np.stack(
                    [
                        starts[key]
                        for key in zip(rows["trial"].tolist(), rows["beta"].tolist(), strict=True)
                    ]
                )
                x, y, order = (
                    np.stack([tasks[arm.width, t][part] for t in rows["trial"].tolist()])
                    for part in range(3)
                )
                yield Block(
                    p,
                    arm,
                    horizon,
                    rows,
                    Crowd(x, y, rows["scale"], p["leak"]),
                    list(np.swapaxes(layers, 0, 1)),
                    order,
                )


def follow(block: Block, choices: Whole, tried: Table) -> tuple[dict[str, Array], list[Array]]:
    """A block along its choices `(trajectories, updates)`.

    The computed columns, and the layers where choices are to be tried.
    """
    crowd, here, there = block.crowd, block.layers, block.layers
    before = native_before = start = crowd.loss(here)
    sums = np.zeros((4, len(start)))
    met = [np.zeros((len(tried["at"]), *layer.shape[1:])) for layer in here]
    for update in range(choices.shape[1]):
        sample, now = block.order[:, update], tried["at"] == update
        for kept, layer in zip(met, here, strict=True):
            kept[now] = layer[tried["row"][now]]
        straight, turning = crowd.scores(here, sample)
        options = block.actions(
            straight, turning, crowd, block.rows["trial"], np.full(len(start), update)
        )
        taken, opposite = (
            _chosen(here, options, side)
            for side in (choices[:, update], _other(choices[:, update], options))
        )
        sizes = np.choose(choices[:, update], [size for _, size, _ in options])
        losses = [
            crowd.loss(one)
            for one in (
                taken,
                opposite,
                step(here, straight, sizes),
                step(here, straight, crowd.reach(straight)),
            )
        ]
        there = crowd.native(there, sample)
        native = crowd.loss(there)
        a, o, z, w = (one - before for one in losses)
        m, n = (a + o) / 2, native - native_before
        sums += [m - z, a - m, z - w, w - n]
        here, before, native_before = taken, losses[0], native
    smallest = np.min([layer.min(axis=(1, 2)) for layer in (*here, *there)], axis=0)
    names = ("start", "final", "native", "even", "handedness", "step", "drift", "smallest")
    return dict(zip(names, (start, before, native_before, *sums, smallest), strict=True)), met


def _chosen(
    layers: list[Array], options: list[tuple[list[Array], Array, float]], choice: Whole
) -> list[Array]:
    score = [
        np.choose(choice[:, None, None], [option[0][n] for option in options])
        for n in range(len(layers))
    ]
    return step(layers, score, np.choose(choice, [size for _, size, _ in options]))


def _other(choice: Whole, options: list[tuple[list[Array], Array, float]]) -> Whole:
    """The action that turns the other way with the same step: itself, where it does not turn."""
    return np.where(choice == 0, 0, 3 - choice) if options[1][2] else choice


def readings(block: Block, layers: list[Array], tried: Table) -> Array:
    """What every action of the tried choices reads, `(choices, actions)`."""
    row, at = tried["row"], tried["at"]
    crowd, order, trials = block.crowd.part(row), block.order[row], block.rows["trial"][row]
    name, count = block.arm.name, block.order.shape[1]
    believed = order if name != "wrong_schedule" else block.spoilt[0][trials]
    straight, turning = crowd.scores(layers, order[np.arange(len(at)), at])
    ends = []
    for score, size, _ in block.actions(straight, turning, crowd, trials, at):
        going = step(layers, score, size)
        for offset in range(1, count if block.horizon == END else block.horizon + 1):
            if not (active := at + offset < count).any():
                break
            moved = crowd.native(
                going, believed[np.arange(len(at)), np.minimum(at + offset, count - 1)]
            )
            going = [
                np.where(active[:, None, None], new, old)
                for new, old in zip(moved, going, strict=True)
            ]
        ends.append(crowd.loss(going))
    if name.startswith("noise_"):
        return np.stack(ends, axis=1) * (
            1 + float(name.partition("_")[2]) * block.spoilt[2][trials, at]
        )
    return np.stack(ends, axis=1)


def simulated(tables: Tables, p: Parameters) -> tuple[Columns, Columns]:
    """The computed columns of `trajectories` and of `choices`."""
    told = np.clip(tables["choices"]["action"], 0, 2).astype(np.int8)
    return _simulated(json.dumps(p, sort_keys=True), told.tobytes())


@lru_cache(maxsize=1)
def _simulated(text: str, told: bytes) -> tuple[Columns, Columns]:
    p, stored = json.loads(text), np.frombuffer(told, np.int8)
    wanted, parts, first = stored.astype(np.int64), [], 0
    for number, block in enumerate(blocks(p)):
        shape = block.order.shape
        size = shape[0] * shape[1]
        choices = stored[first : first + size].reshape(shape).astype(np.int64)
        rng = draws.stream(p["bootstrap_seed"], number)
        tried = {"row": rng.integers(0, shape[0], TRIED), "at": rng.integers(0, shape[1], TRIED)}
        columns, met = follow(block, choices, tried)
        read = readings(block, met, tried)
        best, mine = read.argmin(axis=1), choices[tried["row"], tried["at"]]
        worse = read[np.arange(TRIED), mine] > read.min(axis=1) + ALIKE * np.abs(read).max(axis=1)
        wanted[first + tried["row"] * shape[1] + tried["at"]] = np.where(worse, best, mine)
        parts.append(columns)
        first += size
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    terms = {
        name: computed(found[name], found["start"])
        for name in ("even", "handedness", "step", "drift")
    }
    losses = {
        name: loss(found[name], 1 + 1e-3 / p["leak"]) for name in ("start", "final", "native")
    }
    return losses | terms | {"smallest": computed(found["smallest"])}, {"action": Expected(wanted)}


def comparators(tables: Tables, p: Parameters) -> Columns:
    """The final losses of learners with equal compute.

    All trials where that is short, the first one where it is long.
    """
    wanted = tables["comparators"]["final"].copy()
    rows, losses = _followed(json.dumps(p, sort_keys=True))
    wanted[rows] = losses
    size = wanted + 1e-2 * np.sqrt(np.abs(wanted)) + 1e-4
    return {"final": computed(wanted, size)}


@lru_cache(maxsize=1)
def _followed(text: str) -> tuple[Whole, Array]:
    """The rows of comparators that are followed, and their final losses."""
    p = json.loads(text)
    cases = keys.grid(
        depth=p["depths"],
        beta=np.asarray(p["betas"], float),
        scale=np.asarray(p["scales"], float),
        trial=range(p["trials"]),
    )
    at, rows, losses = 0, [], []
    for learner in LEARNERS:
        for horizon in p["horizons"]:
            many = foresight.multiple(p, horizon)
            long = (many if learner != "full_batch" else many / 6) * foresight.updates(
                p, 3
            ) > PATIENCE
            for depth in p["depths"]:
                here = np.flatnonzero(
                    (cases["depth"] == depth) & ((cases["trial"] == 0) | (not long))
                )
                rows.append(at + here)
                losses.append(
                    _alone(p, learner, many, {name: values[here] for name, values in cases.items()})
                )
            at += len(cases["trial"])
    return np.concatenate(rows), np.concatenate(losses)


def _alone(p: Parameters, learner: str, many: int, rows: Table) -> Array:
    """One comparator on some rows."""
    trials = rows["trial"].tolist()
    longer = p["epochs"] * (many if learner == "longer" else 1)
    orders = {
        trial: foresight.order(draws.stream(p["seed"], trial, 2), longer, 6)
        for trial in dict.fromkeys(trials)
    }
    x, y = (
        np.stack([draws.task(p["seed"], trial, p["concentration"])[part] for trial in trials])
        for part in (0, 1)
    )
    order, every = np.stack([orders[trial] for trial in trials]), many if learner == "finer" else 1
    crowd = Crowd(x, y, rows["scale"] / every, p["leak"])
    starts = [
        foresight.start(p, t, 3, int(d), b)
        for t, d, b in zip(trials, rows["depth"], rows["beta"].tolist(), strict=True)
    ]
    layers = list(np.swapaxes(np.stack(starts), 0, 1))
    if learner == "full_batch":
        for _ in range(p["epochs"] * many):
            score = _gradient(crowd, layers)
            layers = step(layers, score, crowd.reach(score))
        return crowd.loss(layers)
    for update in range(order.shape[1] * every):
        layers = crowd.native(layers, order[:, update // every])
    return crowd.loss(layers)


def _gradient(crowd: Crowd, layers: list[Array]) -> list[Array]:
    """Minus the gradient of the summed loss by the weights."""
    flows = [np.swapaxes(crowd.inputs, 1, 2)]
    for layer in layers:
        flows.append(layer @ flows[-1])
    back, found = np.swapaxes(crowd.targets, 1, 2) - flows[-1], []
    for layer, flow in zip(layers[::-1], flows[-2::-1], strict=True):
        found.insert(0, back @ np.swapaxes(flow, 1, 2))
        back = np.swapaxes(layer, 1, 2) @ back
    return found
